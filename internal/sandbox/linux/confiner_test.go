//go:build linux && (amd64 || arm64)

package linux

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

func TestMain(m *testing.M) {
	// Should the dispatch of package confine ever fail, each helper would run
	// all tests, and each of these would start more helpers.
	if len(os.Args) > 1 && (os.Args[1] == confine.Arg || os.Args[1] == confine.CheckArg) {
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// best returns a confiner for the best level that works here.
func best(t *testing.T) *confiner {
	t.Helper()
	for _, c := range (System{}).Candidates(nil) {
		if c.Err == nil && c.Confiner.Try(t.Context()) == nil {
			t.Cleanup(c.Confiner.Close)
			return c.Confiner.(*confiner)
		}
	}
	t.Skip("nothing confines here")
	return nil
}

// start starts an sh script. Its output is read from the file.
func start(t *testing.T, s *confiner, script string, stdin *os.File) (level.Process, *os.File) {
	t.Helper()
	sh, err := program.Lookup("/bin/sh", program.LookupOptions{})
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	tmp := s.TempDir()
	if tmp == "" {
		tmp = t.TempDir()
	}
	p, err := s.Start(&level.Launch{
		Policy: sandbox.Policy{Limits: sandbox.DefaultLimits()}, Command: &sandbox.Command{Program: sh, Dir: "/"},
		Argv: []string{sh.Path, "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=" + tmp},
		Tmp: tmp, Stdin: stdin, Stdout: w, Stderr: w,
	})
	_ = w.Close()
	if err != nil {
		t.Fatalf("Start(%q) = %v", script, err)
	}
	return p, r
}

// finish returns what a program printed, and how it ended.
func finish(t *testing.T, p level.Process, r *os.File) (string, level.Ending) {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	<-p.Ended()
	return string(text), p.Reap()
}

// On kernels whose Landlock cannot block signals, the filter protects at least the
// helper and the server.
func TestWithoutSignalScope(t *testing.T) {
	if supervised.LandlockABI() < 3 {
		t.Skip("no Landlock here")
	}
	old := &confiner{level: sandbox.LevelPartial, landlock: 5}
	t.Cleanup(old.Close)
	for _, script := range []string{"kill -STOP $PPID", "kill -0 $PPID", "kill -0 -$PPID", "kill -0 -1"} {
		p, r := start(t, old, script+" 2>/dev/null && echo done; echo alive", nil)
		text, end := finish(t, p, r)
		if got := strings.TrimSpace(text); got != "alive" || end.Code != 0 || end.Err != nil {
			t.Errorf("%s: the program printed %q and ended as %+v, want the signal refused", script, got, end)
		}
	}
}

// A run does not wait for its helper, and no helper is started while a short one
// goes on; Close waits for all of them.
func TestHelpersAfterRun(t *testing.T) {
	s := best(t)
	ready := func() *helper {
		s.spares.mu.Lock()
		defer s.spares.mu.Unlock()
		return s.spares.ready
	}
	within := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	p, r := start(t, s, "true", nil)
	finish(t, p, r)
	within("no helper is ready after a run", func() bool { return ready() != nil })
	waiting := ready().cmd.Process.Pid

	in, goOn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, r = start(t, s, "read line", in)
	_ = in.Close()
	within("no helper is ready while a long run goes on", func() bool { h := ready(); return h != nil && h.cmd.Process.Pid != waiting })
	_ = goOn.Close()
	finish(t, p, r)
	last := ready().cmd.Process.Pid

	s.Close()
	for _, pid := range []int{waiting, last} {
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("after Close: helper %d: %v, want it gone", pid, err)
		}
	}
}
