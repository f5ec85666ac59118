//go:build amd64 || arm64

package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An engine may drop what it cannot do, with a warning at best. So what was asked for is
// looked at from inside of each container, before anything of a pack is read there. What
// follows is how a given container is compared with its spec.

// given is what a container must have, for the helper to compare.
type given struct {
	Mounts []givenMount // in the order of the spec

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

// check compares this container with g.
func (g *given) check() error {
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
	links, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(links)) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name != "lo" {
			return fmt.Errorf("the engine gave the container the network interface %q", name)
		}
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	return g.compare(string(text))
}

// isOwnMount reports whether a mount that nobody asked for is one that an engine makes in
// each container, and that nothing needs to keep a program from: the kernel's own, file
// systems in memory, which count as the container's, and some files of the engine's.
func isOwnMount(at, kind string) bool {
	switch kind {
	case "tmpfs", "devtmpfs", "devpts", "mqueue", "proc":
		return true
	}
	return slices.Contains([]string{"/dev/shm", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv"}, at)
}

// compare compares a table of mounts, as in /proc/self/mountinfo, with g.
func (g *given) compare(table string) error {
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
		case strings.HasPrefix(kind, "cgroup") || kind == "sysfs":
			return fmt.Errorf("the engine did not make %q read-only in the container", at)
		case g.Alone && !isOwnMount(at, kind):
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

// limitFiles are the names of limits: :: controller → of version 1 and version 2.
var limitFiles = map[string][2]string{"memory": {"memory.limit_in_bytes", "memory.max"}, "pids": {"pids.max", "pids.max"}}

// bounded returns an error if nothing shows that the container has the spec's bounds on
// memory and processes. limits are those that were read, of which the first that has one
// counts: :: controller → limit.
func bounded(s *spec, limits ...map[string]int64) error {
	for _, of := range []struct {
		controller, what string
		asked            int64
	}{{"memory", "memory", s.HostConfig.Memory}, {"pids", "processes", s.HostConfig.PidsLimit}} {
		have := int64(unknownLimit)
		for _, l := range limits {
			if n, ok := l[of.controller]; ok && have == unknownLimit {
				have = n
			}
		}
		switch {
		case have == unknownLimit:
			return fmt.Errorf("nothing shows that the engine bounded the container's %s; Podman without root's rights needs version 2 of control groups for that", of.what)
		case have > of.asked:
			return fmt.Errorf("the engine did not bound the container's %s to %d, as it was asked to", of.what, of.asked)
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
	for controller, names := range limitFiles {
		if n := limitAt(dirs(controller), names[:]...); n != unknownLimit {
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

// limitAt returns the lowest limit in the folders of control groups.
func limitAt(dirs []string, names ...string) int64 {
	lowest := int64(unknownLimit)
	for _, dir := range dirs {
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err != nil {
				n = noLimit // "max"
			}
			if lowest == unknownLimit || n < lowest {
				lowest = n
			}
		}
	}
	return lowest
}
