//go:build unix && !linux

package level

import "golang.org/x/sys/unix"

// KeepDescriptors keeps whatever this process itself inherited from the
// programs that it starts, as far as descriptors commonly go.
func KeepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		unix.CloseOnExec(fd)
	}
}

// argSpace is ARG_MAX of the strictest, with room for what a loader adds.
func argSpace() int { return 256<<10 - 4<<10 }
