package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// int80 makes a system call as i386 programs do.
func int80(number uintptr) (result uintptr)

// i386 asks for its pid with the number of getpid on i386; elsewhere, 20 is writev(2).
func i386() error { return inChild(pid80) }

//go:nosplit
func pid80(*[6]uintptr) unix.Errno {
	pid, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	if int80(20) != pid {
		return unix.ENOSYS
	}
	return 0
}

// x32 asks for its pid with the bit that marks 32-bit pointers.
func x32() error {
	const bit = 0x40000000
	_, _, e := unix.RawSyscall(bit|unix.SYS_GETPID, 0, 0, 0)
	return errno(e)
}

//go:nosplit
func nanosleep(ts *unix.Timespec) {
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(ts)), 0, 0)
}
