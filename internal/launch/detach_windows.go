package launch

import (
	"os/exec"
	"syscall"
)

// detach keeps console events for this program, such as Ctrl-C, from the new
// program. Its streams are the null device.
func detach(cmd *exec.Cmd, c console) {
	const createNoWindow = 0x08000000
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	if c == windowless {
		cmd.SysProcAttr.CreationFlags |= createNoWindow
	}
}
