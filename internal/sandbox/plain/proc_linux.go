package plain

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
// It is killed when the thread that started it ends, so also when this process does.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
}

// awaitExit returns when the program has ended. It leaves the reaping to Wait, so the
// pid cannot be reused until then.
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

// groupRuns reports whether the process group has a member that is not a zombie. If
// it cannot tell, it returns true.
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
