package plain

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

const createNoWindow = 0x08000000

func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | createNoWindow,
	}
}

// terminateGroup kills at once: Windows has no signal that asks.
func terminateGroup(cmd *exec.Cmd) { killGroup(cmd) }

// killGroup kills only the program; killing its children takes a job object, which
// comes with confinement.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func awaitGroup(*exec.Cmd) {}

func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func endOf(state *os.ProcessState) level.Ending {
	e := level.Ending{Code: -1}
	if state == nil {
		return e
	}
	e.Code = state.ExitCode()
	e.Usage.CPU = state.UserTime() + state.SystemTime()
	return e
}
