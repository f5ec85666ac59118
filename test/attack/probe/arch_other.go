//go:build linux && !amd64

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// i386 is not available on this machine.
func i386() error { return unix.ENOSYS }

// x32 is not available either.
func x32() error { return unix.ENOSYS }

//go:nosplit
func nanosleep(ts *unix.Timespec) {
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(ts)), 0, 0)
}
