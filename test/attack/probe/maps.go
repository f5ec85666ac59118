//go:build linux

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapsFlood COUNT MIB starts COUNT processes that request MIB of shared memory at a time, as
// fast as they can. Each has very many other mappings, and children that do the same and end
// at once. It never ends.
func mapsFlood(args []string) int {
	a := [6]uintptr{uintptr(number(args, 1)) << 20}
	for range number(args, 0) {
		_, _ = forkDo(floodMaps, &a)
	}
	say("flooded\n")
	stay()
	return 1
}

//go:nosplit
func floodMaps(a *[6]uintptr) unix.Errno {
	// Every other page has different permissions, so each is a separate mapping.
	const mappings = 30000
	const size = mappings * 4096
	p, _, e := unix.RawSyscall6(unix.SYS_MMAP, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, ^uintptr(0), 0)
	for i := uintptr(0); e == 0 && i < size; i += 2 * 4096 {
		unix.RawSyscall(unix.SYS_MPROTECT, p+i, 4096, unix.PROT_READ)
	}
	for {
		shareOnce(a[0])
		if pid, e := fork(); e == 0 && pid == 0 {
			shareOnce(4096)
			quit(0)
		}
		var status uint32
		unix.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
	}
}

// shareOnce requests shared memory and returns it.
//
//go:nosplit
func shareOnce(size uintptr) {
	p, _, e := unix.RawSyscall6(unix.SYS_MMAP, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, ^uintptr(0), 0)
	if e == 0 {
		unix.RawSyscall6(unix.SYS_MUNMAP, p, size, 0, 0, 0, 0) // RawSyscall needs more stack than there is
	}
}
