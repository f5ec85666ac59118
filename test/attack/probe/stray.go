//go:build linux

package main

import "golang.org/x/sys/unix"

// The ways in which a child strays; see fork.go for what this code may do.

//go:nosplit
func asChild(*[6]uintptr) unix.Errno {
	stay()
	return 0
}

//go:nosplit
func asGroup(*[6]uintptr) unix.Errno {
	unix.RawSyscall(unix.SYS_SETPGID, 0, 0, 0)
	stay()
	return 0
}

//go:nosplit
func asSession(*[6]uintptr) unix.Errno {
	unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	stay()
	return 0
}

// asDaemon cuts all ties to the process that started it. The argument is an open
// /dev/null.
//
//go:nosplit
func asDaemon(a *[6]uintptr) unix.Errno {
	unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	if pid, _ := fork(); pid != 0 {
		quit(0)
	}
	for fd := range uintptr(3) {
		unix.RawSyscall(unix.SYS_DUP3, a[0], fd, 0)
	}
	stay()
	return 0
}

// asSubreaper adopts orphans among its own descendants.
//
//go:nosplit
func asSubreaper(*[6]uintptr) unix.Errno {
	unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0)
	if pid, _ := fork(); pid == 0 {
		if pid, _ := fork(); pid != 0 {
			quit(0)
		}
	}
	stay()
	return 0
}

// asHydra is always gone before anyone can kill it: each process lives for 0.3 ms, and
// starts the next one before it ends.
//
//go:nosplit
func asHydra(*[6]uintptr) unix.Errno {
	for {
		unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		if pid, _ := fork(); pid > 0 {
			quit(0)
		}
		pause(300_000)
	}
}

//go:nosplit
func asStopped(*[6]uintptr) unix.Errno {
	unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	pid, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	unix.RawSyscall(unix.SYS_KILL, pid, uintptr(unix.SIGSTOP), 0)
	stay()
	return 0
}
