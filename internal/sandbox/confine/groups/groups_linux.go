//go:build amd64 || arm64

package groups

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound the members of a group together. A field that is 0 sets no bound.
type Limits struct {
	Processes  int64 // and threads
	Memory     int64 // bytes
	Processors int64
}

// controllers returns the controllers that the limits need.
func (l Limits) controllers() []string {
	var all []string
	for name, limit := range map[string]int64{"pids": l.Processes, "memory": l.Memory, "cpu": l.Processors} {
		if limit > 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// A Group is a control group. Its folders are locked while its owner lives.
type Group struct {
	dirs  []string // one in version 2, and one for each controller in version 1
	locks []int    // of dirs
	v2    bool     // of control groups
}

// errNone is why a group cannot be made: no control group is delegated to this user.
var errNone = errors.New("no control group with the controllers memory, pids and cpu is delegated to you; start packs-mcp in one (systemd-run --user --scope, or a user service)")

// New makes a group with these limits. The error says why it cannot be made, or why the
// system does not enforce them.
func New(name string, l Limits) (*Group, error) {
	need := l.controllers()
	problem := errNone
	for _, base := range bases() {
		if !enables(base, need) {
			continue
		}
		g, err := make2(path.Join(base, name))
		if err == nil {
			if err = g.set(l); err == nil {
				return g, nil
			}
			g.Remove()
		}
		problem = err
	}
	if os.Getuid() != 0 || !slices.ContainsFunc(need, isTree) {
		return nil, problem
	}
	g := &Group{}
	for _, controller := range need {
		dir := path.Join(root, controller, name)
		fd, err := makeFolder(dir)
		if err != nil {
			g.Remove()
			return nil, err
		}
		g.dirs, g.locks = append(g.dirs, dir), append(g.locks, fd)
	}
	if err := g.set(l); err != nil {
		g.Remove()
		return nil, err
	}
	return g, nil
}

// make2 makes a group of version 2.
func make2(dir string) (*Group, error) {
	fd, err := makeFolder(dir)
	if err != nil {
		return nil, err
	}
	return &Group{dirs: []string{dir}, locks: []int{fd}, v2: true}, nil
}

// makeFolder makes a group's folder and locks it. A server that starts between the two
// steps may remove the folder as a leftover, so it tries again.
func makeFolder(dir string) (lock int, err error) {
	const attempts = 16
	for range attempts {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, err
		}
		if fd, ok := lockFolder(dir); ok {
			return fd, nil
		}
		time.Sleep(time.Millisecond)
	}
	return -1, fmt.Errorf("control group %q is in use", dir)
}

// lockFolder locks a group's folder, unless another process holds the lock.
func lockFolder(dir string) (fd int, ok bool) {
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
	for _, base := range slices.Concat(bases(), trees()) {
		entries, _ := os.ReadDir(base)
		for _, e := range entries {
			name := e.Name()
			if !strings.HasPrefix(name, Prefix) {
				continue
			}
			dir := path.Join(base, name)
			if fd, ok := lockFolder(dir); ok {
				_ = os.Remove(dir)
				_ = unix.Close(fd)
			}
		}
	}
}

// Remove removes the group of a job whose helper was killed.
func Remove(name string) {
	for _, base := range slices.Concat(bases(), trees()) {
		removeFolder(path.Join(base, name))
	}
}

// removeFolder removes a group whose members were killed. They count for a
// moment longer, and on a busy machine for more than half a second.
func removeFolder(dir string) {
	const most = 2 * time.Second
	for pause := time.Millisecond; pause < most; pause *= 2 {
		if err := os.Remove(dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(pause)
	}
}

// root is where the system shows its control groups.
const root = "/sys/fs/cgroup"

// bases returns the groups of version 2 in which others may be made: for root the top of
// the hierarchy, and for other users those that this process is in, the nearest first.
func bases() []string {
	tops := []string{root, root + "/unified"}
	if os.Getuid() == 0 {
		return tops
	}
	text, _ := os.ReadFile("/proc/self/cgroup")
	var all []string
	for line := range strings.Lines(string(text)) {
		at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for ; at != "." && at != ""; at = path.Dir(at) {
			for _, top := range tops {
				all = append(all, path.Join(top, at))
			}
		}
	}
	return all
}

// enables reports whether groups below base have these controllers.
func enables(base string, controllers []string) bool {
	list, err := os.ReadFile(path.Join(base, "cgroup.subtree_control"))
	has := strings.Fields(string(list))
	return err == nil && len(controllers) > 0 && !slices.ContainsFunc(controllers, func(c string) bool { return !slices.Contains(has, c) })
}

// trees returns the hierarchies of version 1 that are used here, which only root may change.
func trees() []string {
	if os.Getuid() != 0 {
		return nil
	}
	return []string{root + "/cpu", root + "/memory", root + "/pids"}
}

// isTree reports whether a controller has a hierarchy of version 1.
func isTree(controller string) bool {
	_, err := os.Stat(path.Join(root, controller, "cgroup.procs"))
	return err == nil
}

// A setting is a file of a group with its value.
type setting struct {
	controller, file, value string
	optional                bool // kernels without swap lack it
}

// period is the time of which a share is given, in microseconds.
const period = 100_000

// set sets the limits.
func (g *Group) set(l Limits) error {
	var all []setting
	if n := strconv.FormatInt(l.Processes, 10); l.Processes > 0 {
		all = append(all, setting{"pids", "pids.max", n, false})
	}
	if n := strconv.FormatInt(l.Memory, 10); l.Memory > 0 && g.v2 {
		all = append(all, setting{"memory", "memory.max", n, false}, setting{"memory", "memory.swap.max", "0", true}, setting{"memory", "memory.oom.group", "1", true})
	} else if l.Memory > 0 {
		all = append(all, setting{"memory", "memory.limit_in_bytes", n, false}, setting{"memory", "memory.memsw.limit_in_bytes", n, true})
	}
	if share := strconv.FormatInt(l.Processors*period, 10); l.Processors > 0 && g.v2 {
		all = append(all, setting{"cpu", "cpu.max", share + " " + strconv.Itoa(period), false})
	} else if l.Processors > 0 {
		all = append(all, setting{"cpu", "cpu.cfs_period_us", strconv.Itoa(period), false}, setting{"cpu", "cpu.cfs_quota_us", share, false})
	}
	for _, s := range all {
		if err := os.WriteFile(path.Join(g.folder(s.controller), s.file), []byte(s.value), 0); err != nil && !s.optional {
			return err
		}
	}
	return nil
}

// folder returns the folder with the files of a controller; empty: there is none.
func (g *Group) folder(controller string) string {
	for _, dir := range g.dirs {
		if g.v2 || path.Base(path.Dir(dir)) == controller {
			return dir
		}
	}
	return ""
}

// Limit sets how many members the group may have. It does not remove members.
func (g *Group) Limit(most int64) error {
	return os.WriteFile(path.Join(g.folder("pids"), "pids.max"), []byte(strconv.FormatInt(most, 10)), 0)
}

// OutOfMemory reports whether the kernel has killed a member because all together had too
// much memory. A nil Group has no members.
func (g *Group) OutOfMemory() bool {
	if g == nil {
		return false
	}
	return kills(g.folder("memory")) > 0
}

// kills returns how many members of the group with this folder the kernel has killed because
// all together had too much memory; 0 if the folder does not show it.
func kills(dir string) int64 {
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		text, err := os.ReadFile(path.Join(dir, file))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			if n, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("oom_kill ")); ok {
				count, _ := strconv.ParseInt(string(n), 10, 64)
				return count
			}
		}
	}
	return 0
}

// A Watch notices when memory runs out in a group that others made.
type Watch struct {
	dirs   []string
	before int64 // kills when it began
}

// WatchContainer returns a Watch of the control group of the container that this process is in.
// Outside of a container, or where the container shows no control group, it notices nothing.
func WatchContainer() *Watch { return WatchFolders(root, path.Join(root, "memory")) }

// WatchFolders returns a Watch of the groups with these folders. Folders that are no group's
// notice nothing.
func WatchFolders(dirs ...string) *Watch {
	w := &Watch{dirs: dirs}
	w.before = w.kills()
	return w
}

func (w *Watch) kills() (n int64) {
	for _, dir := range w.dirs {
		n += kills(dir)
	}
	return n
}

// OutOfMemory reports whether the kernel has killed a member since w began because all
// together had too much memory. A nil Watch notices nothing.
func (w *Watch) OutOfMemory() bool { return w != nil && w.kills() > w.before }

// NewMember returns how a child gets into the group: clone3(2) makes it there, with a
// descriptor, or it writes "0" to files.
//
// The usual file, cgroup.procs, is the last resort: the kernel moves all threads of a
// process only when no process starts or ends, and waits for an RCU grace period to
// know, often more than 10 ms. The files of version 1 move the child's only thread.
func (g *Group) NewMember() (descriptor int, files []string) {
	if g.v2 && hasClone3() {
		return g.locks[0], nil
	}
	name := "tasks"
	if g.v2 {
		name = "cgroup.procs"
	}
	for _, dir := range g.dirs {
		files = append(files, path.Join(dir, name))
	}
	return -1, files
}

// hasClone3 reports whether clone3(2) exists and is allowed; the filters of some
// containers refuse it.
func hasClone3() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
	return errno == unix.EINVAL
}

// Remove removes the group. Call it when no member is left.
func (g *Group) Remove() {
	for i, dir := range g.dirs {
		removeFolder(dir)
		_ = unix.Close(g.locks[i])
	}
}
