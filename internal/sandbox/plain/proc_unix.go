//go:build unix

package plain

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

func terminateGroup(cmd *exec.Cmd) { signalGroup(cmd, unix.SIGTERM) }

func killGroup(cmd *exec.Cmd) { signalGroup(cmd, unix.SIGKILL) }

func signalGroup(cmd *exec.Cmd, sig syscall.Signal) {
	// kill(-1) would hit every process, and kill(0) our own group.
	if pid := cmd.Process.Pid; pid > 1 {
		_ = unix.Kill(-pid, sig) // ESRCH: it is gone already
	}
}

// groupWait bounds how long a killed group may take to disappear. The kernel needs far
// less, unless a member hangs in a system call.
const groupWait = time.Second

// awaitGroup waits until no member of the program's group runs. The group was killed
// and its leader reaped.
func awaitGroup(cmd *exec.Cmd) {
	pid := cmd.Process.Pid
	if pid <= 1 {
		return
	}
	pause := 100 * time.Microsecond
	for deadline := time.Now().Add(groupWait); time.Now().Before(deadline); {
		if unix.Kill(-pid, 0) != nil {
			return
		}
		// In a container, the server may be process 1, which adopts orphans.
		if n, err := unix.Wait4(-pid, nil, unix.WNOHANG, nil); err == nil && n > 0 {
			continue
		}
		if pause > time.Millisecond && !groupRuns(pid) {
			return // they are dead, and their parent has not reaped them yet
		}
		time.Sleep(pause)
		pause = min(2*pause, 20*time.Millisecond)
	}
}

// endOf returns how the program ended and what it used.
func endOf(state *os.ProcessState) level.Ending {
	e := level.Ending{Code: -1}
	if state == nil {
		return e
	}
	e.Code = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = level.SignalName(ws.Signal())
	}
	e.Usage.CPU = state.UserTime() + state.SystemTime()
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.Usage.MaxRSS = int64(ru.Maxrss)
		if runtime.GOOS != "darwin" {
			e.Usage.MaxRSS <<= 10 // KiB on every other system
		}
	}
	return e
}
