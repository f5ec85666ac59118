//go:build linux

package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// What runs in a child of fork has one thread and Go's locks as they happened
// to be. So it may do nothing but system calls, and must not give Go's
// scheduler a chance, which a function that can grow its stack does: all of it
// is marked nosplit.

// A childFunc is what a child does.
type childFunc func(a *[6]uintptr) unix.Errno

// fork is fork(2) as the kernel has it.
//
//go:nosplit
func fork() (pid int, e unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return int(n), e
}

// forkDo has a child do something and end with the errno that comes of it.
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

// apart does one system call in a child of its own, which has a single thread
// as some calls want, and whose end undoes what it did.
func apart(trap, a, b, c uintptr) error {
	return inChild(call, trap, a, b, c)
}

// inChild returns what comes of do in a child.
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

// ended waits for a child whose status is an errno.
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
