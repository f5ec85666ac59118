//go:build unix && !linux

package plain

import (
	"os/exec"
	"syscall"
)

// sysProcAttr gives a program a session of its own. Its process group has the
// program's pid, the program cannot leave it, and it has no controlling
// terminal: it can neither read keystrokes nor paint a prompt on /dev/tty.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit returns when the program has ended. From then on its pid could be reused,
// in theory before its group is killed a moment later.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// groupRuns returns true: zombies cannot be told apart here.
func groupRuns(int) bool { return true }
