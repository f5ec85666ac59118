//go:build unix

package launch

import (
	"os/exec"
	"syscall"
)

// detach gives the program its own session, so that signals from this program's
// terminal, such as Ctrl-C, do not reach it. Its streams are the null device.
func detach(cmd *exec.Cmd, _ console) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
