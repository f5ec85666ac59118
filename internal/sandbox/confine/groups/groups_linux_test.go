//go:build amd64 || arm64

package groups

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// newGroup makes a group for a test.
func newGroup(t *testing.T, l Limits) *Group {
	t.Helper()
	g, err := New(Prefix+rand.Text(), l)
	if err != nil {
		if os.Getuid() == 0 && slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "groups") {
			t.Fatalf("%v, though groups are required", err)
		}
		t.Skipf("groups: %v", err)
	}
	return g
}

// Sweep removes a group whose owner is gone, and no other.
func TestSweep(t *testing.T) {
	all := Limits{Processes: 10, Memory: 64 << 20, Processors: 1}
	used := newGroup(t, all)
	t.Cleanup(used.Remove)
	left := newGroup(t, all)
	for _, fd := range left.locks {
		_ = unix.Close(fd) // as when its helper is killed
	}
	Sweep()
	for _, dir := range left.dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the group that was left is there still (%v)", err)
		}
	}
	for _, dir := range used.dirs {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the group in use is gone: %v", err)
		}
	}
}

// A starting server sweeps while others make groups, and takes none of them away for
// good.
func TestGroupsWhileSwept(t *testing.T) {
	newGroup(t, Limits{Processes: 10}).Remove()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				Sweep()
			}
		}
	}()
	for range 300 {
		g, err := New(Prefix+rand.Text(), Limits{Processes: 10})
		if err != nil {
			t.Errorf("no group could be made while a server swept: %v", err)
			break
		}
		if _, err := os.Stat(g.dirs[0]); err != nil {
			t.Errorf("the group in use is gone: %v", err)
		}
		g.Remove()
	}
	close(stop)
	<-stopped
}

// A process gets into a group in each of the ways that NewMember returns.
func TestNewMember(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes control groups at the top")
	}
	for _, base := range append(bases(), trees()...) {
		v2 := false
		if _, err := os.Stat(path.Join(base, "cgroup.threads")); err == nil {
			v2 = true
		} else if _, err := os.Stat(path.Join(base, "tasks")); err != nil {
			continue
		}
		t.Run(strings.ReplaceAll(strings.TrimPrefix(base, "/"), "/", "-"), func(t *testing.T) {
			g, err := make2(path.Join(base, Prefix+rand.Text()))
			if err != nil {
				t.Skipf("no control group can be made here: %v", err)
			}
			defer g.Remove()
			g.v2 = v2
			fd, files := g.NewMember()
			if byFD := fd >= 0; byFD != (v2 && hasClone3()) || byFD == (len(files) > 0) {
				t.Fatalf("NewMember = %d, %q", fd, files)
			}
			cmd := exec.Command("sh", append([]string{"-c", `for f; do echo 0 >"$f"; done; cat /proc/self/cgroup`, "sh"}, files...)...)
			if fd >= 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
			}
			text, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), ":/"+path.Base(g.dirs[0])+"\n") {
				t.Errorf("the process is in\n%s\nand not in %s", text, g.dirs[0])
			}
		})
	}
}

// The settings of version 2 are those that its documentation names, whether or not this
// machine has their controllers.
func TestSettingsOfVersion2(t *testing.T) {
	dir := t.TempDir()
	g := &Group{dirs: []string{dir}, v2: true}
	if err := g.set(Limits{Processes: 10, Memory: 64 << 20, Processors: 2}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"pids.max": "10", "memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "1", "cpu.max": "200000 100000",
	} {
		if text, err := os.ReadFile(path.Join(dir, file)); string(text) != want {
			t.Errorf("%s has %q (%v), want %q", file, text, err, want)
		}
	}
	for text, want := range map[string]bool{"low 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n": false, "oom 1\noom_kill 3\n": true} {
		if err := os.WriteFile(path.Join(dir, "memory.events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := g.OutOfMemory(); got != want {
			t.Errorf("with %q, OutOfMemory = %v", text, got)
		}
		// A container's group that was out of memory before is watched from then on.
		w := WatchFolders(path.Join(dir, "none"), dir)
		if w.OutOfMemory() {
			t.Errorf("with %q, a new Watch reports what was before it", text)
		}
		if err := os.WriteFile(path.Join(dir, "memory.events"), []byte("oom_kill 4\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !w.OutOfMemory() {
			t.Errorf("with one more than %q, a Watch reports nothing", text)
		}
	}
}
