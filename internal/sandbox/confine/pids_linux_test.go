//go:build amd64 || arm64

package confine

import (
	"crypto/rand"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A group that nobody sees to is removed, and one that somebody does is not.
func TestSweepGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes control groups")
	}
	used := newPidsGroup(GroupName+rand.Text(), 10)
	if used == nil {
		t.Skip("no control group can be made here")
	}
	t.Cleanup(used.remove)
	left := newPidsGroup(GroupName+rand.Text(), 10)
	if left == nil {
		t.Fatal("no second group can be made")
	}
	_ = unix.Close(left.lock) // as when its helper is killed
	SweepGroups()
	if _, err := os.Stat(left.dir); !os.IsNotExist(err) {
		t.Errorf("the group that was left is there still (%v)", err)
	}
	if _, err := os.Stat(used.dir); err != nil {
		t.Errorf("the group in use is gone: %v", err)
	}
}

// A server that starts sweeps while others make groups, and takes none away for
// good.
func TestGroupsWhileSwept(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes control groups")
	}
	first := newPidsGroup(GroupName+rand.Text(), 10)
	if first == nil {
		t.Skip("no control group can be made here")
	}
	first.remove()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				SweepGroups()
			}
		}
	}()
	for range 300 {
		g := newPidsGroup(GroupName+rand.Text(), 10)
		if g == nil {
			t.Error("no group could be made while a server swept")
			break
		}
		if _, err := os.Stat(g.dir); err != nil {
			t.Errorf("the group in use is gone: %v", err)
		}
		g.remove()
	}
	close(stop)
	<-stopped
}

// A child is a member before its program starts, whichever way its group takes
// members.
func TestJoin(t *testing.T) {
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
			g := makeGroup(path.Join(base, GroupName+rand.Text()))
			if g == nil {
				t.Skip("no control group can be made here")
			}
			defer g.remove()
			g.v2 = v2
			var p [2]int
			if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			f := &family{}
			f.join(&f.program, g)
			if made := f.into != nil; made != (v2 && hasClone3()) {
				t.Errorf("the child is made in its group: %v", made)
			}
			f.program.call("place standard output", unix.SYS_DUP3, p[1], 1, 0)
			f.program.call(StepStart, unix.SYS_EXECVE, "/bin/cat", f.program.cstrings([]string{"cat", "/proc/self/cgroup"}), f.program.cstrings(nil))
			pid, err := f.fork()
			_ = unix.Close(p[1])
			if err != nil {
				t.Fatal(err)
			}
			out := os.NewFile(uintptr(p[0]), "what cat says")
			defer out.Close()
			text, err := io.ReadAll(out)
			var status unix.WaitStatus
			if _, werr := unix.Wait4(pid, &status, 0, nil); werr != nil || err != nil || status != 0 {
				t.Fatalf("cat ended with %v, %v, status %v", err, werr, status)
			}
			if !strings.Contains(string(text), ":/"+path.Base(g.dir)+"\n") {
				t.Errorf("the child is in\n%s\nand not in %s", text, g.dir)
			}
		})
	}
}
