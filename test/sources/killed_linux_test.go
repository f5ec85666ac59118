package sources_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/served"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// steps lists the system calls that change the disk; a process is killed between these.
const steps = "renameat,renameat2,fsync,syncfs,unlinkat,mkdirat,ftruncate"

// TestKilled kills the program while it adds, updates and restores a pack: at random moments,
// and, with strace, before each change of the disk in turn. SOURCES_KILLS says how often
// (make soak-sources).
//
// After each kill, the next command, whatever it is, leaves nothing behind; the store matches
// its lock file, no answer holds for other bytes, and repeating the command succeeds.
func TestKilled(t *testing.T) {
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("SOURCES_KILLS")); err == nil {
		kills = n
	} else if testing.Short() {
		kills = 3
	}
	w := newWorld(t)
	w.commit("0")
	w.ok("add", w.repo.URL+"@main", "--yes", "--allow-unsigned")
	w.ok("attach", id, "--trust", "user")
	k := &killer{world: w}
	if _, err := exec.LookPath("strace"); err == nil && kills > 20 {
		k.each(kills * 2 / 3)
	} else if kills > 20 {
		upstream.Absent(t, "strace", "not found")
	}
	for k.kills < kills {
		k.one(k.rounds, 0)
	}
	t.Logf("%d kills in %d rounds: %v; the answer held %d times", k.kills, k.rounds, k.by, k.held)
}

// A killer kills commands.
type killer struct {
	*world
	rounds, kills, held int
	by                  map[string]int   // :: command → how often it was killed
	took                [3]time.Duration // the last duration of each command
}

// each kills each command before its first change of the disk, its second and so on, until
// it completes.
func (k *killer) each(most int) {
	for what := range 3 {
		for at := 1; k.kills < (what+1)*most/3; at++ {
			if !k.one(what, at) {
				k.t.Logf("%s changes the disk %d times", []string{"add", "update", "sync"}[what%3], at-1)
				break
			}
		}
	}
}

// one prepares a command, kills it, and checks the result. With at, it kills it before that
// change of the disk, otherwise after some time. It reports whether the command was killed.
func (k *killer) one(what, at int) bool {
	k.t.Helper()
	k.rounds++
	granted := k.tells("always")
	if granted == "" {
		k.t.Fatal("the tool does not run, although every question has a yes")
	}
	version := fmt.Sprint(k.rounds)
	if k.rounds%4 == 0 { // publish the same bytes again
		version = strings.TrimPrefix(granted, "version ")
	}
	var args []string
	switch what % 3 {
	case 0:
		k.ok("remove", id)
		k.commit(version)
		args = []string{"add", k.repo.URL + "@main", "--all", "--yes", "--allow-unsigned"}
	case 1:
		k.commit(version)
		args = []string{"update", "--yes"}
	case 2:
		args = []string{"sync"}
		var err error
		if k.rounds%2 == 0 {
			err = os.WriteFile(k.pack()+"/tell.sh", []byte("#!/bin/sh\necho version changed\n"), 0o700)
		} else {
			err = os.RemoveAll(k.pack())
		}
		if err != nil {
			k.t.Fatal(err)
		}
	}
	killed := k.kill(args, what%3, at)
	about := fmt.Sprintf("round %d, %q, killed %v at %d", k.rounds, args, killed, at)
	if killed {
		k.kills++
		if k.by == nil {
			k.by = map[string]int{}
		}
		k.by[args[0]]++
	}

	// A pack to be restored differs until it is restored.
	if status, out := k.run("verify"); status != 0 && (what%3 != 2 || status != 2) {
		k.t.Errorf("%s: verify ends with %d:\n%s", about, status, out)
	}
	k.left(about + ", and then verify") // any command removes leftovers
	switch got := k.tells("deny"); got {
	case "":
	case granted:
		k.held++
	default:
		k.t.Errorf("%s: the tool ran unasked, and says %q", about, got)
	}
	if status, out := k.run(args...); status != 0 {
		k.t.Fatalf("%s: again, it ends with %d:\n%s", about, status, out)
	}
	if status, out := k.run("verify"); status != 0 || !strings.Contains(out, id) {
		k.t.Errorf("%s, and again: verify ends with %d:\n%s", about, status, out)
	}
	if what%3 < 2 {
		if data, err := os.ReadFile(k.pack() + "/tell.sh"); err != nil || !strings.Contains(string(data), "version "+version+"\n") {
			k.t.Errorf("%s, and again: the program is %q, %v, want version %s", about, data, err, version)
		}
	}
	k.left(about)
	if k.t.Failed() {
		k.t.FailNow()
	}
	return killed
}

// kill starts a command and kills it.
func (k *killer) kill(args []string, what, at int) bool {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), served.Patience)
	defer cancel()
	cmd := k.Command(ctx, args...)
	if at > 0 {
		cmd.Args = append([]string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + steps, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", steps, at)}, append([]string{k.Program}, args...)...)
		var err error
		if cmd.Path, err = exec.LookPath("strace"); err != nil {
			k.t.Fatal(err)
		}
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	if at == 0 {
		if k.took[what] == 0 {
			k.took[what] = 300 * time.Millisecond
		}
		timer := time.AfterFunc(rand.N(k.took[what]+k.took[what]/8), func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		if ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			return true
		}
		k.t.Fatalf("packs-mcp %q: %v", args, err)
	}
	k.took[what] = time.Since(began)
	return false
}
