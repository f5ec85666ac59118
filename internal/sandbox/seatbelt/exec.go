//go:build darwin || linux

package seatbelt

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors of the confined helper: standard input and output are the
// program's; in place of standard error is the pipe to the supervisor.
const (
	fdStatus = 2
	fdStderr = 3
)

// cpuGrace is how many seconds a program has between SIGXCPU and SIGKILL.
const cpuGrace = 5

// confined sets the limits and becomes the program of argv. It returns an exit status
// only if that failed.
func confined(limits string, argv []string) int {
	// The pipe closes by itself when this process becomes the program.
	status, err := unix.FcntlInt(fdStatus, unix.F_DUPFD_CLOEXEC, fdStderr+1)
	if err != nil {
		return 125
	}
	fail := func(step Step, err error) int {
		errno, _ := errors.AsType[syscall.Errno](err)
		_, _ = unix.Write(status, []byte(failedFor+string(step)+"\x00"+strconv.Itoa(int(errno))))
		return 125
	}
	if err := dup(fdStderr, fdStatus); err != nil {
		return fail(StepLimits, err)
	}
	_ = unix.Close(fdStderr)
	var l Limits
	if err := json.Unmarshal([]byte(limits), &l); err != nil {
		return fail(StepLimits, err)
	}
	if err := l.set(); err != nil {
		return fail(StepLimits, err)
	}
	if _, err := unix.Write(status, []byte(ready)); err != nil {
		return 125 // without the supervisor, the program must not run
	}
	return fail(StepExec, syscall.Exec(argv[0], argv, os.Environ()))
}

// dup makes the descriptor to a copy of from. The process must not open other files
// meanwhile. (No dup2 exists on all systems.)
func dup(from, to int) error {
	_ = unix.Close(to)
	got, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD, to)
	if err == nil && got != to {
		_ = unix.Close(got)
		err = unix.EBUSY
	}
	return err
}

// set sets the limits of this process, which the program inherits. There is no limit
// for memory: the system counts reserved memory, and common programs reserve much more
// than they use.
func (l Limits) set() error {
	for _, r := range []struct {
		which      int
		soft, hard int64
		zero       bool // 0 is a limit
	}{
		{unix.RLIMIT_CORE, 0, 0, true},
		{unix.RLIMIT_CPU, l.CPU, l.CPU + cpuGrace, false},
		{unix.RLIMIT_FSIZE, l.FileSize, l.FileSize, false},
		{unix.RLIMIT_NPROC, int64(l.Processes), int64(l.Processes), false},
		{unix.RLIMIT_NOFILE, int64(l.OpenFiles), int64(l.OpenFiles), false},
	} {
		if r.soft == 0 && !r.zero {
			continue
		}
		var old syscall.Rlimit
		if err := syscall.Getrlimit(r.which, &old); err != nil {
			return err
		}
		hard := min(uint64(r.hard), old.Max) // only root may raise it
		// The syscall package raised the limit of open files, and restores it when it
		// executes a program, unless the limit was set through the package.
		if err := syscall.Setrlimit(r.which, &syscall.Rlimit{Cur: min(uint64(r.soft), hard), Max: hard}); err != nil {
			return err
		}
	}
	return nil
}
