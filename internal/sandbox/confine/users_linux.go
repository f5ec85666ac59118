//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped waits until the helper has given the namespace its ids. Only the helper
// may give it more than one: see [mapUsers].
func (p *plan) mapped() {
	const what = "wait for the ids of the namespace"
	p.call(what, unix.SYS_READ, fdOrders, unsafe.Pointer(new([1]byte)), 1).out = uint8(slotGot)
	s := p.call(what, 0)
	s.kind, s.from[0], s.arg[1] = doResult, uint8(slotGot), 1
}

// A userMap is a map of ids that root's helper writes for its child's user namespace.
type userMap struct{ file, text string }

// userMaps returns maps that give the user namespace of root's child every id that the
// helper has, so that a layer can hold changed files of any owner. They grant no
// rights: the program has no capabilities, and root's own id is mapped either way.
func userMaps() ([]userMap, error) {
	maps := []userMap{{"setgroups", "deny"}}
	for _, file := range []string{"uid_map", "gid_map"} {
		own, err := os.ReadFile("/proc/self/" + file)
		if err != nil {
			return nil, err
		}
		maps = append(maps, userMap{file, same(string(own))})
	}
	return maps, nil
}

// mapUsers writes the maps of a child. The child waits for them.
func mapUsers(pid int, maps []userMap) error {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	for _, m := range maps {
		fd, err := unix.Open(dir+m.file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte(m.text)) // all of it or nothing
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// same returns the map that gives a child namespace all ids of own, unchanged.
func same(own string) string {
	var b strings.Builder
	for line := range strings.Lines(own) {
		var inside, outside, count uint64
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 {
			fmt.Fprintf(&b, "%d %d %d\n", inside, inside, count)
		}
	}
	return b.String()
}
