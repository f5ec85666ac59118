//go:build amd64 || arm64

package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/processes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// shell returns an sh command in dir, which is also its workspace.
func shell(t *testing.T, dir, script string) sandbox.Command {
	t.Helper()
	sh, err := program.Lookup("/bin/sh", program.LookupOptions{})
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	env := sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: dir})
	return sandbox.Command{Program: sh, Args: []string{"-c", script}, Dir: dir, Workspace: dir, Env: env}
}

// The new file tree has its own links, such as /var/tmp. Folders given to a run may
// be below one of these, and making the tree must change nothing on the host.
func TestRunBelowALinkOfTheTree(t *testing.T) {
	for _, parent := range []string{"/var/tmp", "/dev/shm", "/tmp"} {
		t.Run(parent, func(t *testing.T) {
			ws, err := os.MkdirTemp(parent, "sandbox-test-")
			if err != nil {
				t.Skip(err)
			}
			defer os.RemoveAll(ws)
			c := shell(t, ws, "echo x >new; ls")
			r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
			defer r.Close()
			res, err := r.Run(t.Context(), allow(sandbox.Limits{}, c), c)
			if err != nil || string(res.Stdout.Bytes()) != "new\n" {
				t.Fatalf("Run in %q = %+v, %v, want it to write there", ws, res, err)
			}
			for _, elsewhere := range []string{"/tmp", "/run", "/proc"} {
				if elsewhere == parent {
					continue
				}
				if _, err := os.Lstat(filepath.Join(elsewhere, filepath.Base(ws))); err == nil {
					t.Errorf("something was made in %s", elsewhere)
				}
			}
		})
	}
}

// Killing the supervisor does not free the processes that it supervised: the server
// adopts them.
func TestRunWithoutItsSupervisor(t *testing.T) {
	r := New(Options{Skip: []sandbox.Level{sandbox.LevelFull}, TempDir: t.TempDir()})
	defer r.Close()
	if r.Probe(t.Context()).Level != sandbox.LevelPartial {
		t.Skip("level partial is not available here")
	}
	ws := behave(t, "").Dir
	c := shell(t, ws, "sleep 300 & echo $PPID $! >pids.new; mv pids.new pids; wait")
	type answer struct {
		res *sandbox.Result
		err error
	}
	ended := make(chan answer, 1)
	go func() {
		res, err := r.Run(t.Context(), allow(sandbox.Limits{Timeout: 20 * time.Second}, c), c)
		ended <- answer{res, err}
	}()
	var supervisor, child int
	for supervisor == 0 {
		select {
		case a := <-ended:
			t.Fatalf("Run ended before its time: %+v, %v", a.res, a.err)
		case <-time.After(time.Millisecond):
			text, _ := os.ReadFile(filepath.Join(ws, "pids"))
			_, _ = fmt.Sscan(string(text), &supervisor, &child)
		}
	}
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a := <-ended
	if a.err != nil || a.res.Signal != "SIGKILL" || a.res.Cause != sandbox.CauseExit {
		t.Errorf("Run = %+v, %v, want the end of a program that was killed", a.res, a.err)
	}
	if alive(child) {
		t.Errorf("the program's child %d outlives its supervisor", child)
	}
}

// What whoever started the server made of its limits and descriptors takes no
// level away.
func TestProbeInOddProcesses(t *testing.T) {
	r := New(Options{Skip: skipped()})
	want := r.Probe(t.Context()).Level
	r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	many := make([]*os.File, 150)
	for i := range many {
		many[i] = null
	}
	for _, tt := range []struct {
		name string
		how  []string
		open []*os.File
	}{
		{"as it is", nil, nil},
		{"low limits", []string{"cpu", "nproc", "fsize"}, nil},
		{"many descriptors", nil, many},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], tt.how...)
			cmd.Env = append(os.Environ(), childVar+"=level", "GORACE=atexit_sleep_ms=0")
			cmd.ExtraFiles = tt.open
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != want.String() {
				t.Errorf("the level is %q (%v), want %q", got, err, want)
			}
		})
	}
}

// When a process with several threads, such as a helper, needs a larger table of
// descriptors, the kernel waits for every processor: often for longer than the
// rest of a start takes.
func TestRunKeepsTheHelpersTableSmall(t *testing.T) {
	tableSize := func(pid int) (n int) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			if size, ok := strings.CutPrefix(line, "FDSize:"); ok {
				_, _ = fmt.Sscan(size, &n)
			}
		}
		return n
	}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	if r.Probe(t.Context()).Level == sandbox.LevelNone {
		t.Skip("level none has no helper")
	}
	c := behave(t, "ready")
	fifo := fifoIn(t, c.Dir)
	c.Args = append(c.Args, fifo)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, allow(sandbox.Limits{Timeout: 20 * time.Second}, c), c)
		ended <- err
	}()
	ready, err := os.Open(fifo) // returns when the program runs
	if err != nil {
		t.Fatal(err)
	}
	_ = ready.Close()
	// Both are forked from this process, whose own table they may inherit.
	var working, waiting []int
	for deadline := time.Now().Add(10 * time.Second); len(waiting) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		working, waiting = nil, nil
		for _, pid := range processes.Children(os.Getpid()) {
			switch size := tableSize(pid); {
			case size == 0: // it has just ended, and has no table
			case len(processes.Children(pid)) > 0:
				working = append(working, size)
			default:
				waiting = append(waiting, size)
			}
		}
	}
	if len(working) != 1 || len(waiting) != 1 || working[0] != waiting[0] {
		t.Errorf("helpers with a job have tables of %d descriptors, those that wait for one have %d, want one of each and the same", working, waiting)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// A run in a project cannot see the file system that holds its layers.
func TestLayersAreOutOfSight(t *testing.T) {
	r := New(Options{TempDir: t.TempDir(), Changes: keptChanges(t)})
	t.Cleanup(r.Close)
	if report := r.Probe(t.Context()); report.Level != sandbox.LevelFull || report.Overlay != "" {
		t.Skipf("no overlay here: %v, %s", report.Level, report.Overlay)
	}
	seen := func(layers bool) map[string]int {
		dir := plantTree(t, map[string]string{"file": "x"})
		p, c := inProject(t, dir, "cat /proc/self/mountinfo; ls /proc/self/task")
		if layers {
			p.Layers = r.Layers(t.Context(), []string{dir})
		} else {
			p.ReadOnly = []string{dir}
		}
		res, err := r.Run(t.Context(), p, c)
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("Run = %+v, %v", res, err)
		}
		points := map[string]int{}
		for line := range strings.Lines(string(res.Stdout.Bytes())) {
			if fields := strings.Fields(line); len(fields) > 5 {
				at := fields[4]
				if at == dir {
					at = "the project"
				}
				if at == c.Workspace {
					at = "the workspace"
				}
				points[at]++
			}
		}
		return points
	}
	with, without := seen(true), seen(false)
	if len(with) < 5 {
		t.Fatalf("mounts: %v", with)
	}
	for at, n := range with {
		if without[at] != n {
			t.Errorf("something is mounted at %q %d times with a layer, and %d times without one", at, n, without[at])
		}
	}
}
