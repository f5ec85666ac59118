package changes

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/turns"
)

// stoppedEnv has the store whose records this program, started by the test below,
// holds until it is killed.
const stoppedEnv = "CHANGES_TEST_STOPPED"

func holdRecords(dir string) error {
	locks, err := turns.Open(filepath.Join(dir, "turns"))
	if err != nil {
		return err
	}
	return locks.Alone(context.Background(), "records", true, func() error {
		if _, err := os.Stdout.WriteString("has it\n"); err != nil {
			return err
		}
		select {}
	})
}

// A server that was stopped while it changed records keeps others waiting for a
// bounded time. They say which process it is, and nothing is lost.
func TestStoppedServer(t *testing.T) {
	state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	s := openStore(t, func(o *Options) { o.Dir = state })
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"CLAUDE.md": "waits", "f": "x"})
	set := w.finish(Ending{})

	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), stoppedEnv+"="+state)
	out, err := cmd.StdoutPipe()
	do(t, err)
	do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "has it\n" {
		t.Fatalf("the other server said %q, %v", line, err)
	}
	do(t, cmd.Process.Signal(syscall.SIGSTOP))

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Discard(ctx, set.ID)
	if wait, ok := errors.AsType[*WaitError](err); !ok || wait.Holder.PID != cmd.Process.Pid || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Discard = %v, want that it waited for process %d", err, cmd.Process.Pid)
	}
	// Expiry can wait.
	sets, err := s.List()
	if err != nil || len(sets) != 1 {
		t.Errorf("List = %d sets, %v; want the one", len(sets), err)
	}
	// A run that needs no other set's space is not affected.
	w = begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"f": "y"})
	if again := w.finish(Ending{}); again.Count(Applied) != 1 {
		t.Errorf("%v", states(again))
	}
	// A person's apply counts once it is carried out. The next server records its effect
	// on the other set.
	begun := time.Now()
	applied, err := s.Apply(t.Context(), set.ID, "")
	if wait, ok := errors.AsType[*WaitError](err); !ok || wait.Holder.PID != cmd.Process.Pid || !strings.Contains(err.Error(), "if it is stopped") {
		t.Errorf("Apply = %v, want that it waited for process %d", err, cmd.Process.Pid)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("Apply took %v", took)
	}
	if applied == nil || applied.Count(Applied) != 1 {
		t.Errorf("Apply = %+v, want what it applied", applied)
	}
	if got := look(t, dir)["CLAUDE.md"]; got == "" {
		t.Error("what was applied is not there")
	}
	do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	next, err := s.Begin(t.Context(), Run{}, nil, Folder{Path: dir})
	do(t, err)
	do(t, next.Close())
	if set, err := s.Get(set.ID); err != nil || set.Count(Applied) != 2 || set.Count(Held) != 0 {
		t.Errorf("the first set is %+v, %v; want nothing of it held any more", set, err)
	}
}
