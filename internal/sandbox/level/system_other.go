//go:build unix && !linux

package level

import "golang.org/x/sys/unix"

// KeepDescriptors keeps programs from inheriting the first 256 descriptors that this
// process inherited itself.
func KeepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		unix.CloseOnExec(fd)
	}
}

// argSpace returns the smallest ARG_MAX of these systems, less what a loader adds.
func argSpace() int { return 256<<10 - 4<<10 }
