//go:build amd64 || arm64

package pids

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Sweep removes a group whose owner is gone, and no other.
func TestSweep(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes control groups")
	}
	used := New(Prefix+rand.Text(), 10)
	if used == nil {
		t.Skip("no control group can be made here")
	}
	t.Cleanup(used.Remove)
	left := New(Prefix+rand.Text(), 10)
	if left == nil {
		t.Fatal("no second group can be made")
	}
	_ = unix.Close(left.lock) // as when its helper is killed
	Sweep()
	if _, err := os.Stat(left.dir); !os.IsNotExist(err) {
		t.Errorf("the group that was left is there still (%v)", err)
	}
	if _, err := os.Stat(used.dir); err != nil {
		t.Errorf("the group in use is gone: %v", err)
	}
}

// A starting server sweeps while others make groups, and takes none of them away for
// good.
func TestGroupsWhileSwept(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes control groups")
	}
	first := New(Prefix+rand.Text(), 10)
	if first == nil {
		t.Skip("no control group can be made here")
	}
	first.Remove()
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
		g := New(Prefix+rand.Text(), 10)
		if g == nil {
			t.Error("no group could be made while a server swept")
			break
		}
		if _, err := os.Stat(g.dir); err != nil {
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
		t.Skip("only root makes control groups")
	}
	for _, base := range groupBases() {
		v2 := false
		if _, err := os.Stat(path.Join(base, "cgroup.threads")); err == nil {
			v2 = true
		} else if _, err := os.Stat(path.Join(base, "tasks")); err != nil {
			continue
		}
		t.Run(strings.ReplaceAll(strings.TrimPrefix(base, "/"), "/", "-"), func(t *testing.T) {
			g := makeGroup(path.Join(base, Prefix+rand.Text()))
			if g == nil {
				t.Skip("no control group can be made here")
			}
			defer g.Remove()
			g.v2 = v2
			fd, file := g.NewMember()
			if byFD := fd >= 0; byFD != (v2 && hasClone3()) || byFD == (file != "") {
				t.Fatalf("NewMember = %d, %q", fd, file)
			}
			cmd := exec.Command("sh", "-c", `[ -z "$0" ] || echo 0 >"$0"; cat /proc/self/cgroup`, file)
			if fd >= 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
			}
			text, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), ":/"+path.Base(g.dir)+"\n") {
				t.Errorf("the process is in\n%s\nand not in %s", text, g.dir)
			}
		})
	}
}
