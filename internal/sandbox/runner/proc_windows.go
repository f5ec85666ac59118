package runner

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
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

// killGroup kills the program only; its children need a job object, which
// comes with confinement.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func awaitGroup(*exec.Cmd) {}

func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// keepDescriptors has nothing to do: Go passes a list of the handles that are
// inherited.
func keepDescriptors() {}

func endOf(state *os.ProcessState) ending {
	e := ending{code: -1}
	if state == nil {
		return e
	}
	e.code = state.ExitCode()
	e.usage.CPU = state.UserTime() + state.SystemTime()
	return e
}

// spaceOf is the length of the command line in 16-bit units, each argument with
// its quotes, and with the 0 at its end.
func spaceOf(argv, _ []string) int {
	size := 0
	for _, s := range argv {
		size += winjob.UTF16Len(syscall.EscapeArg(s)) + 1
	}
	return size
}

// argSpace is the longest command line that CreateProcess takes.
func argSpace() int { return 32_767 }
