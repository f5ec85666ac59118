package changes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killedEnv has the folder in which this program, started by the test below,
// applies and undoes until it is killed.
const killedEnv = "CHANGES_TEST_KILLED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		fmt.Fprintln(os.Stderr, applyForever(dir))
		os.Exit(3)
	}
	if dir := os.Getenv(stoppedEnv); dir != "" {
		fmt.Fprintln(os.Stderr, holdRecords(dir))
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// fixed is the time of every file that the killed program makes, so that each
// round ends in the same two states.
func fixed() time.Time { return time.Unix(1_700_000_000, 123456789) }

func killedStore(dir string) (*Store, error) {
	return Open(context.Background(), Options{Dir: filepath.Join(dir, "state"), MaxBytes: 4 << 20})
}

func applyForever(dir string) error {
	ctx := context.Background()
	for {
		s, err := killedStore(dir)
		if err != nil {
			return err
		}
		project := filepath.Join(dir, "project")
		if _, err := os.Lstat(filepath.Join(project, "new-0")); err == nil {
			sets, err := s.List()
			if err != nil {
				return err
			}
			for _, set := range sets {
				if set.Count(Applied) > 0 && set.Undoes == "" {
					if _, err := s.Undo(ctx, set.ID); err != nil {
						return err
					}
					break
				}
			}
			continue
		}
		if err := applyOnce(ctx, s, dir, project); err != nil {
			return err
		}
	}
}

func applyOnce(ctx context.Context, s *Store, dir, project string) error {
	turn, err := s.Begin(ctx, Run{ID: "r"}, nil, Folder{Path: project})
	if err != nil {
		return err
	}
	defer turn.Close()
	layer, err := os.MkdirTemp(dir, "layer")
	if err != nil {
		return err
	}
	defer os.RemoveAll(layer)
	to, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer to.Close()
	c, err := turn.Copy(ctx, 0, to, CopyLimits{})
	if err != nil {
		return err
	}
	if err := changeForKill(layer); err != nil {
		return err
	}
	_, err = turn.Finish(ctx, Ending{}, Layer{Dir: to, Copy: c})
	return err
}

// changeForKill makes the run's changes: one of each kind.
func changeForKill(layer string) error {
	write := func(name, text string) error {
		at := filepath.Join(layer, name)
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
		return os.Chtimes(at, fixed(), fixed())
	}
	for i := range 5 {
		for _, name := range []string{"new-", "old-"} {
			if err := write(fmt.Sprintf("%s%d", name, i), "after"); err != nil {
				return err
			}
		}
		if err := os.Remove(filepath.Join(layer, fmt.Sprintf("gone-%d", i))); err != nil {
			return err
		}
	}
	for _, step := range []func() error{
		func() error { return os.MkdirAll(filepath.Join(layer, "made/deep"), 0o750) },
		func() error { return write("made/deep/file", "x") },
		func() error { return os.RemoveAll(filepath.Join(layer, "tree")) },
		func() error { return os.Chmod(filepath.Join(layer, "mode"), 0o755) },
		func() error { return os.Remove(filepath.Join(layer, "link")) },
		func() error { return os.Symlink("old-1", filepath.Join(layer, "link")) },
		func() error { return os.Remove(filepath.Join(layer, "type")) },
		func() error { return os.Mkdir(filepath.Join(layer, "type"), 0o755) },
		func() error { return write("type/in", "x") },
		func() error { return write("CLAUDE.md", "held") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// If the program is killed at any moment, the next start leaves the folder in the
// state before or the state after, with none of our files in it. CHANGES_TEST_ROUNDS
// sets the rounds.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	files := map[string]string{"mode": "m", "link@": "old-0", "type": "t", "tree/a": "1", "tree/b/c": "2"}
	for i := range 5 {
		files[fmt.Sprintf("old-%d", i)], files[fmt.Sprintf("gone-%d", i)] = "before", "before"
	}
	plant(t, project, files)
	before := look(t, project)
	s, err := killedStore(dir)
	do(t, err)
	do(t, applyOnce(t.Context(), s, dir, project))
	after := look(t, project)
	seen := map[string]int{}
	for round := range rounds(t, 25) {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), killedEnv+"="+dir)
		var out strings.Builder
		cmd.Stderr = &out
		do(t, cmd.Start())
		time.Sleep(20*time.Millisecond + time.Duration(rand.N(150))*time.Millisecond)
		do(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 3 {
			t.Fatalf("round %d: it ended by itself: %s", round, out.String())
		}
		if entries, _ := os.ReadDir(filepath.Join(dir, "state", "open")); len(entries) > 0 {
			seen["in the middle"]++
		}
		if _, err := killedStore(dir); err != nil {
			t.Fatal(err)
		}
		got := look(t, project)
		switch {
		case got["new-0"] == "":
			seen["before"]++
			same(t, fmt.Sprintf("round %d", round), before, got)
		default:
			seen["after"]++
			same(t, fmt.Sprintf("round %d", round), after, got)
		}
		if t.Failed() {
			return
		}
		if entries, _ := os.ReadDir(filepath.Join(dir, "state", "open")); len(entries) > 0 {
			t.Fatalf("round %d: %v is still unfinished", round, entries)
		}
	}
	t.Logf("killed: %v", seen)
}
