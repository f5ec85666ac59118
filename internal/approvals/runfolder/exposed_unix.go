//go:build unix

package runfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// OpenFlags keep open from waiting on a named pipe.
const OpenFlags = os.O_RDONLY | syscall.O_NONBLOCK

// Exposed says how other users could read or change a file, or put something
// into a folder; empty if only this user can.
func Exposed(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return "belongs to another user"
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return fmt.Sprintf("can be accessed by other users (mode %s)", fi.Mode().Perm())
	}
	return ""
}

// firstPIDs is the initial PID namespace, which shows every process of the
// machine. Its number is the same on every Linux.
const firstPIDs = "pid:[4026531836]"

// ProcessGone reports whether the process certainly does not exist. In a
// container, a process outside is not visible.
func ProcessGone(pid int) bool {
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		return false
	}
	if runtime.GOOS != "linux" {
		return true
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && pids == firstPIDs
}
