package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives a program a session of its own. Its process group has the
// program's pid, the program cannot leave it, and it has no controlling
// terminal: it can neither read keystrokes nor paint a prompt on /dev/tty.
// It is killed when the thread that started it ends, as with this process.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
}

// awaitExit returns when the program has ended, and leaves it for Wait to
// reap, so that until then its pid can be nobody else's.
func awaitExit(cmd *exec.Cmd) {
	for {
		switch err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err {
		case unix.EINTR:
		case nil:
			return
		default:
			_ = cmd.Wait() // a kernel without waitid: see proc_other.go
			return
		}
	}
}

// keepDescriptors keeps whatever this process itself inherited, or a library
// opened carelessly, from the programs that it starts. Go opens everything so
// that it is closed in them.
func keepDescriptors() {
	// Kernels before 5.11 do not know the flag.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// argSpace is how much of argv and env the kernel passes on: a quarter of the
// stack's limit, at least 128 KiB and at most 6 MiB (fs/exec.c).
func argSpace() int {
	const least, most = 128 << 10, 6 << 20
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return least
	}
	return int(max(least, min(most, stack.Cur/4)))
}

// groupRuns reports whether the process group has a member that is not a
// zombie, or cannot tell.
func groupRuns(pgid int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // gone
		}
		// pid (command) state ppid pgrp …; the command may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" && fields[0] != "X" {
			return true
		}
	}
	return len(stats) == 0
}
