//go:build linux

package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Code in a child of fork has one thread, and Go's locks in an arbitrary state. So it may
// only make system calls, and must not enter Go's scheduler, as a function does that grows
// its stack: all of it is marked nosplit.

// A childFunc is what a child does.
type childFunc func(a *[6]uintptr) unix.Errno

// fork is the kernel's fork(2).
//
//go:nosplit
func fork() (pid int, e unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return int(n), e
}

// forkDo makes a child call do and exit with the resulting errno.
//
//go:nosplit
func forkDo(do childFunc, a *[6]uintptr) (pid int, e unix.Errno) {
	if pid, e = fork(); e == 0 && pid == 0 {
		quit(int(do(a)))
	}
	return pid, e
}

// quit ends a child.
//
//go:nosplit
func quit(code int) {
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
}

// stay never returns.
//
//go:nosplit
func stay() {
	for {
		unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// pause waits.
//
//go:nosplit
func pause(nanoseconds int64) {
	ts := unix.Timespec{Nsec: nanoseconds}
	nanosleep(&ts)
}

// call is one system call.
//
//go:nosplit
func call(a *[6]uintptr) unix.Errno {
	_, _, e := unix.RawSyscall6(a[0], a[1], a[2], a[3], a[4], a[5], 0)
	return e
}

// apart makes one system call in a child, which has a single thread, as some calls require,
// and whose end undoes the effects.
func apart(trap, a, b, c uintptr) error {
	return inChild(call, trap, a, b, c)
}

// inChild returns the result of do in a child.
func inChild(do childFunc, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, e := forkDo(do, &a)
	if e != 0 {
		return e
	}
	return ended(pid)
}

// ended waits for a child whose exit status is an errno.
func ended(pid int) error {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	if ws.Signaled() {
		return answer(unix.SignalName(ws.Signal()))
	}
	return errno(unix.Errno(ws.ExitStatus()))
}
