//go:build amd64 || arm64

package pids

import (
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Group is a control group that bounds how many processes and threads it has. Its
// folder is locked while its owner lives.
type Group struct {
	dir  string
	lock int
	v2   bool // of control groups
}

// New makes a group of at most limit members. It returns nil if this process may not
// make groups, or the system does not count members.
func New(name string, limit int64) *Group {
	for _, base := range groupBases() {
		if !countsPids(base) {
			continue
		}
		g := makeGroup(path.Join(base, name))
		if g == nil {
			continue
		}
		if g.Limit(limit) == nil {
			g.v2 = path.Base(base) != controller
			return g
		}
		g.Remove()
	}
	return nil
}

// makeGroup makes a group and locks its folder. It returns nil if it cannot. A server
// that starts between the two steps may remove the group as a leftover, so it tries
// again.
func makeGroup(dir string) *Group {
	const attempts = 16
	for range attempts {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil
		}
		if fd, ok := lockGroup(dir); ok {
			return &Group{dir: dir, lock: fd}
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// lockGroup locks a group's folder, unless another process holds the lock.
func lockGroup(dir string) (fd int, ok bool) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, false
	}
	var at, have unix.Stat_t
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || unix.Fstat(fd, &have) != nil ||
		unix.Lstat(dir, &at) != nil || at.Ino != have.Ino || at.Dev != have.Dev {
		_ = unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// Prefix begins the name of every group.
const Prefix = "packs-mcp-"

// Sweep removes the groups whose owners are gone. A group with members stays.
func Sweep() {
	for _, base := range groupBases() {
		entries, _ := os.ReadDir(base)
		for _, e := range entries {
			name := e.Name()
			if !strings.HasPrefix(name, Prefix) {
				continue
			}
			dir := path.Join(base, name)
			if fd, ok := lockGroup(dir); ok {
				_ = os.Remove(dir)
				_ = unix.Close(fd)
			}
		}
	}
}

// countsPids reports whether the kernel counts the members of groups below base. In
// version 2, base lists their controllers. In version 1, each controller has a tree.
func countsPids(base string) bool {
	if list, err := os.ReadFile(path.Join(base, "cgroup.subtree_control")); err == nil {
		return slices.Contains(strings.Fields(string(list)), controller)
	}
	_, err := os.Stat(path.Join(base, "cgroup.procs"))
	return err == nil && path.Base(base) == controller
}

// controller names the controller that counts processes, and its tree in version 1.
const controller = "pids"

// Remove removes the group of a job whose helper was killed.
func Remove(name string) {
	for _, base := range groupBases() {
		removeGroup(path.Join(base, name))
	}
}

// removeGroup removes a group whose members were killed. They count for a
// moment longer, and on a busy machine for more than half a second.
func removeGroup(dir string) {
	const most = 2 * time.Second
	for pause := time.Millisecond; pause < most; pause *= 2 {
		if err := os.Remove(dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(pause)
	}
}

// groupBases returns the folders in which groups may be made, for version 2, version
// 1, and both at once.
func groupBases() []string {
	return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"}
}

// Limit sets how many members the group may have. It does not remove members.
func (g *Group) Limit(most int64) error {
	return os.WriteFile(path.Join(g.dir, "pids.max"), []byte(strconv.FormatInt(most, 10)), 0)
}

// NewMember returns how a child gets into the group: clone3(2) makes it there, with a
// descriptor, or it writes "0" to a file.
//
// The usual file, cgroup.procs, is the last resort: the kernel moves all threads of a
// process only when no process starts or ends, and waits for an RCU grace period to
// know, often more than 10 ms. The file of version 1 moves the child's only thread.
func (g *Group) NewMember() (descriptor int, file string) {
	switch {
	case !g.v2:
		return -1, path.Join(g.dir, "tasks")
	case hasClone3():
		return g.lock, ""
	}
	return -1, path.Join(g.dir, "cgroup.procs")
}

// hasClone3 reports whether clone3(2) exists and is allowed; the filters of some
// containers refuse it.
func hasClone3() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
	return errno == unix.EINVAL
}

// Remove removes the group. Call it when no member is left.
func (g *Group) Remove() {
	removeGroup(g.dir)
	_ = unix.Close(g.lock)
}
