//go:build unix

package approvals

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// openFlags keep an open from waiting at a named pipe.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// exposed says how others could read or change a file, or put something into a
// folder; empty when only this user can.
func exposed(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return "belongs to another user"
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return fmt.Sprintf("can be accessed by other users (mode %s)", fi.Mode().Perm())
	}
	return ""
}

// firstPIDs is the namespace in which every process of a machine is seen. Its
// number is the same on every Linux.
const firstPIDs = "pid:[4026531836]"

// processGone reports whether there certainly is no such process. In a container
// there may be one outside that is not seen.
func processGone(pid int) bool {
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		return false
	}
	if runtime.GOOS != "linux" {
		return true
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && pids == firstPIDs
}
