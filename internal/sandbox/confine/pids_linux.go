//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A pidsGroup is a control group that bounds how many processes and threads it
// has. Root's own number of processes has no limit otherwise.
type pidsGroup struct{ dir string }

// newPidsGroup makes a group of at most limit members, where this process may
// do so and the system counts them; otherwise it returns nil.
func newPidsGroup(name string, limit int64) *pidsGroup {
	for _, base := range groupBases() {
		if !countsPids(base) {
			continue
		}
		g := &pidsGroup{path.Join(base, name)}
		if os.Mkdir(g.dir, 0o700) != nil {
			continue
		}
		if g.limit(limit) == nil {
			return g
		}
		g.remove()
	}
	return nil
}

// countsPids reports whether the groups in a group are counted: in version 2 it
// says which controllers they have, in version 1 each controller has its tree.
func countsPids(base string) bool {
	if list, err := os.ReadFile(path.Join(base, "cgroup.subtree_control")); err == nil {
		for name := range strings.FieldsSeq(string(list)) {
			if name == "pids" {
				return true
			}
		}
		return false
	}
	_, err := os.Stat(path.Join(base, "cgroup.procs"))
	return err == nil && path.Base(base) == "pids"
}

// RemoveGroup removes the group of a [Job] whose helper was killed.
func RemoveGroup(name string) {
	for _, base := range groupBases() {
		removeGroup(path.Join(base, name))
	}
}

// removeGroup removes a group whose members were killed. They count for a
// moment longer.
func removeGroup(dir string) {
	const most = 500 * time.Millisecond
	for pause := time.Millisecond; pause < most; pause *= 2 {
		if err := os.Remove(dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(pause)
	}
}

// groupBases are where groups may be made: version 2, 1, and both at once.
func groupBases() []string {
	return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"}
}

// limit sets how many members the group may have. Those it has stay.
func (g *pidsGroup) limit(most int64) error {
	return os.WriteFile(path.Join(g.dir, "pids.max"), []byte(strconv.FormatInt(most, 10)), 0)
}

// members is the file to write a process's number to.
func (g *pidsGroup) members() string { return path.Join(g.dir, "cgroup.procs") }

// remove is called when no member is left.
func (g *pidsGroup) remove() { removeGroup(g.dir) }
