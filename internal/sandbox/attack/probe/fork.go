//go:build linux

package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// fork is fork(2) as the kernel has it. The child has this thread alone, so it
// may do nothing but system calls, and must not return into Go's world.
func fork() (pid int, err error) {
	n, _, e := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return int(n), errno(e)
}

// quit ends a child of fork.
func quit(code int) {
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
}

// stay never returns, and needs nothing but the kernel.
func stay() {
	for {
		unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// apart does one system call in a child of its own, which has a single thread
// as some calls want, and whose end undoes what it did.
func apart(trap, a, b, c uintptr) error {
	return inChild(func() unix.Errno {
		_, _, e := unix.RawSyscall6(trap, a, b, c, 0, 0, 0)
		return e
	})
}

// inChild runs do, which obeys the rules of fork, and returns its answer.
func inChild(do func() unix.Errno) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, err := fork()
	if err != nil {
		return err
	}
	if pid == 0 {
		quit(int(do()))
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
