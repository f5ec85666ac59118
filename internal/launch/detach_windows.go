package launch

import (
	"os/exec"
	"syscall"
)

// detach keeps console events for this program, such as Ctrl-C, from the new
// program. Its streams are the null device.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
