//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
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

// mapUsers gives the user namespace of a child of root's every id that the
// helper itself has, so that a layer can hold a changed file of any owner's. It
// takes no right away from anybody and gives none: the program has no
// capabilities, and root's own id is mapped either way.
func mapUsers(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/setgroups", pid), []byte("deny"), 0); err != nil {
		return err
	}
	for _, name := range []string{"uid_map", "gid_map"} {
		own, err := os.ReadFile("/proc/self/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, name), []byte(same(string(own))), 0); err != nil {
			return err
		}
	}
	return nil
}

// same is the map that gives the ids of one to a namespace below it, each as
// itself.
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
