//go:build amd64 || arm64

package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

// An engine may drop what it cannot do, with a warning at best. So what was asked for is
// looked at from inside of each container, before anything of a pack is read there. What
// follows is how a given container is compared with its spec.

// given is what a container must have, for the helper to compare.
type given struct {
	Mounts []givenMount // in the order of the spec
	Kernel kernel       // of the server's machine

	// Alone says that there is no Landlock, so that a program can write to everything that
	// is mounted writable.
	Alone bool
}

type givenMount struct {
	At       string
	Writable bool
}

// givenOf returns what the container of a spec must have.
func givenOf(s *spec) *given {
	g := &given{}
	for _, m := range s.HostConfig.Mounts {
		g.Mounts = append(g.Mounts, givenMount{m.Target, !m.ReadOnly})
	}
	return g
}

// A kernel is how a kernel shows itself. A container with a runtime such as gVisor's has another one than
// the machine: it is a program there, and what it shows as its own is not the machine's.
type kernel struct {
	Name string     // what uname(2) says, without what a container can have of its own
	File confine.ID // of this program's file
}

// kernelAt returns what this process sees of its kernel. The file of this program is at a path.
func kernelAt(path string) kernel {
	var k kernel
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		k.Name = unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Version[:])
	}
	if info, err := os.Stat(path); err == nil {
		k.File = supervised.IDOf(info)
	}
	return k
}

// differs reports whether other is certainly another kernel: it has another name, and numbers the
// same file in another way. If in doubt, it is the same.
func (k kernel) differs(other kernel) bool {
	none := kernel{}
	return k.Name != other.Name && k.File != other.File &&
		k.Name != none.Name && other.Name != none.Name && k.File != none.File && other.File != none.File
}

// check compares this container with g. If it is foreign, its kernel is not the machine's.
func (g *given) check(foreign bool) error {
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
		return errors.New("the engine did not give the container no_new_privs")
	}
	var have [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &have[0]); err != nil {
		return fmt.Errorf("reading the container's capabilities: %w", err)
	}
	// Those that are ambient are permitted.
	if have != [2]unix.CapUserData{} {
		return errors.New("the engine did not drop the container's capabilities")
	}
	for c := range 64 {
		n, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
		if err != nil {
			break // there are no more
		}
		if n != 0 {
			return fmt.Errorf("the engine did not drop the container's capability %d from its bounding set", c)
		}
	}
	links, err := readProc("/proc/self/net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(links)) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name != "lo" {
			return fmt.Errorf("the engine gave the container the network interface %q", name)
		}
	}
	text, err := readProc("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	return g.compare(string(text), foreign)
}

// readProc reads a file that the kernel made. An image could ask for a volume at /proc, with
// files of its own that say anything.
func readProc(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var at unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &at); err != nil {
		return nil, fmt.Errorf("looking at %s: %w", name, err)
	}
	if at.Type != unix.PROC_SUPER_MAGIC {
		return nil, fmt.Errorf("%s in the container is not the kernel's", name)
	}
	return io.ReadAll(f)
}

// isOwnMount reports whether a mount that nobody asked for is one that an engine makes in
// each container, and that nothing needs to keep a program from: the kernel's own, file
// systems in memory, which count as the container's, and some files of the engine's.
func isOwnMount(at, kind string, foreign bool) bool {
	switch kind {
	case "tmpfs", "devtmpfs", "devpts", "mqueue", "proc":
		return true
	case "dev": // gVisor's devices
		return foreign
	}
	return slices.Contains([]string{"/dev/shm", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv"}, at)
}

// compare compares a table of mounts, as in /proc/self/mountinfo, with g.
func (g *given) compare(table string, foreign bool) error {
	mounts := make(map[string]bool)  // :: path → whether the mount on top of it can be written
	kinds := make(map[string]string) // :: path → its file system
	for line := range strings.Lines(table) {
		// 36 35 98:0 /root /at ro,noatime master:1 - ext3 /dev/root rw,errors=continue
		fields := strings.Fields(line)
		before, after := slices.Index(fields, "-"), 6
		if before < after || len(fields) < before+4 {
			return fmt.Errorf("the container's table of mounts has the line %q", line)
		}
		at := unescape(fields[4])
		kinds[at] = fields[before+1]
		mounts[at] = !slices.Contains(strings.Split(fields[5], ","), "ro") && !slices.Contains(strings.Split(fields[before+3], ","), "ro")
	}
	if writable, ok := mounts["/"]; !ok || writable {
		return errors.New("the engine did not make the container's root folder read-only")
	}
	known := make(map[string]bool)
	for _, m := range g.Mounts {
		known[m.At] = true
		writable, ok := mounts[m.At]
		switch {
		case !ok:
			return fmt.Errorf("the engine did not give the container %q", m.At)
		case writable && !m.Writable:
			return fmt.Errorf("the engine did not make %q read-only in the container", m.At)
		}
	}
	for at, writable := range mounts {
		switch kind := kinds[at]; {
		case !writable || known[at]:
		case kind == "cgroup" && foreign: // of a kernel that only this container has
		case strings.HasPrefix(kind, "cgroup") || kind == "sysfs":
			return fmt.Errorf("the engine did not make %q read-only in the container", at)
		case g.Alone && !isOwnMount(at, kind, foreign):
			return fmt.Errorf("the container has %q (%s), which can be written and was not asked for; take an image without volumes", at, kind)
		}
	}
	return nil
}

// unescape returns a path of a table of mounts, in which some bytes are octal numbers.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// bounded returns an error if nothing shows that the container has the spec's bounds on
// memory, processes and processors. limits are those that were read, of which the first that
// has one counts: :: controller → limit.
func bounded(s *spec, limits ...map[string]int64) error {
	for _, of := range []struct {
		controller, what string
		asked            int64 // 0: nothing
	}{{"memory", "memory", s.HostConfig.Memory}, {"pids", "processes", s.HostConfig.PidsLimit}, {"cpu", "processors", s.HostConfig.NanoCpus}} {
		if of.asked == 0 {
			continue
		}
		have := int64(unknownLimit)
		for _, l := range limits {
			if n, ok := l[of.controller]; ok && have == unknownLimit {
				have = n
			}
		}
		hint := fmt.Sprintf("a rootless engine needs version 2 of control groups for that, with the controller %q delegated to its user", of.controller)
		switch {
		case have == unknownLimit:
			return fmt.Errorf("nothing shows that the engine bounded the container's %s; %s", of.what, hint)
		case have > of.asked:
			return fmt.Errorf("the engine did not bound the container's %s to %d, as it was asked to; %s", of.what, of.asked, hint)
		}
	}
	return nil
}

// insideLimits returns the bounds that a container shows to its own processes.
func insideLimits() map[string]int64 {
	return limitsAt(func(controller string) []string {
		return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/" + controller}
	})
}

// limitsOf returns the bounds of a process, which must not have ended.
func limitsOf(pid int) map[string]int64 {
	return limitsAt(func(controller string) []string { return groupsOf(pid, controller) })
}

func limitsAt(dirs func(controller string) []string) map[string]int64 {
	all := make(map[string]int64)
	for _, controller := range []string{"memory", "pids", "cpu"} {
		if n := limitAt(dirs(controller), controller); n != unknownLimit {
			all[controller] = n
		}
	}
	return all
}

// groupsOf returns the folders that the control group of a process may be, for one
// controller.
func groupsOf(pid int, controller string) []string {
	if pid == 0 {
		return nil
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return nil
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		// 4:memory:/a/b, or 0::/a/b
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) < 3:
		case part[1] == "":
			all = append(all, filepath.Join("/sys/fs/cgroup", part[2]), filepath.Join("/sys/fs/cgroup/unified", part[2]))
		case slices.Contains(strings.Split(part[1], ","), controller):
			all = append(all, filepath.Join("/sys/fs/cgroup", controller, part[2]))
		}
	}
	return all
}

// unknownLimit stands for a limit that nobody could read. It is none that can be asked for.
const unknownLimit = -1

// noLimit stands for a limit that is not set.
const noLimit = 1<<63 - 1

// limitAt returns the lowest limit of a controller in the folders of control groups.
func limitAt(dirs []string, controller string) int64 {
	lowest := int64(unknownLimit)
	for _, dir := range dirs {
		var at unix.Statfs_t
		if unix.Statfs(dir, &at) != nil || at.Type != unix.CGROUP_SUPER_MAGIC && at.Type != unix.CGROUP2_SUPER_MAGIC {
			continue // a folder of an image could say anything
		}
		if n := limitIn(dir, controller); n != unknownLimit && (lowest == unknownLimit || n < lowest) {
			lowest = n
		}
	}
	return lowest
}

// limitIn returns the limit of a controller in the folder of a control group of either version,
// in the unit that a spec has.
func limitIn(dir, controller string) int64 {
	read := func(name string) []string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.Fields(string(text))
	}
	var limit []string // a number, or a share and the period of which it is one
	switch controller {
	case "memory":
		limit = slices.Concat(read("memory.limit_in_bytes"), read("memory.max"))
	case "pids":
		limit = read("pids.max")
	case "cpu":
		if limit = read("cpu.max"); len(limit) == 0 {
			limit = slices.Concat(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us"))
		}
	}
	if len(limit) == 0 {
		return unknownLimit
	}
	n, err := strconv.ParseInt(limit[0], 10, 64)
	if err != nil || n < 0 { // "max", or -1
		return noLimit
	}
	if controller != "cpu" {
		return n
	}
	if len(limit) < 2 {
		return unknownLimit
	}
	period, err := strconv.ParseInt(limit[1], 10, 64)
	if err != nil || period <= 0 || n > noLimit/oneProcessor {
		return unknownLimit
	}
	return n * oneProcessor / period
}
