//go:build amd64 || arm64

package confine

import (
	"crypto/rand"
	"os"
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
