//go:build unix

package launch

import (
	"os/exec"
	"syscall"
)

// detach gives the program a session of its own: what a terminal sends to this
// program, as at Ctrl-C, does not reach it. Its streams are the null device.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
