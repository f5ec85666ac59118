//go:build unix && !linux

package runner

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives a program a session of its own. Its process group has the
// program's pid, the program cannot leave it, and it has no controlling
// terminal: it can neither read keystrokes nor paint a prompt on /dev/tty.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit returns when the program has ended. Its pid is free from then on,
// and in theory somebody else's when its group is killed a moment later.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// keepDescriptors keeps whatever this process itself inherited from the
// programs that it starts, as far as descriptors commonly go.
func keepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		unix.CloseOnExec(fd)
	}
}

// argSpace is ARG_MAX of the strictest, with room for what a loader adds.
func argSpace() int { return 256<<10 - 4<<10 }

// groupRuns is not known here: a member that nobody has reaped counts.
func groupRuns(int) bool { return true }
