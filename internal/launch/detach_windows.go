package launch

import (
	"os/exec"
	"syscall"
)

// detach keeps what a console sends to this program, as at Ctrl-C, from the
// other one. Its streams are the null device.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
