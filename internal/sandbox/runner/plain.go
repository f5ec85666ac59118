package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A plainStarter starts programs at [sandbox.LevelNone]: in a session and process group
// of their own, and otherwise as the user would.
type plainStarter struct{}

func (plainStarter) tempDir() string { return "" }

func (plainStarter) shows(*sandbox.Policy, *sandbox.Command, images) bool { return false }

func (plainStarter) places() bool { return false }

func (plainStarter) overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, noNamespaces
}

func (plainStarter) close() {}

func (plainStarter) start(l *launch) (process, error) {
	cmd := &exec.Cmd{
		Path: l.argv[0], Args: l.argv, Dir: l.command.Dir, Env: l.env,
		Stdout: l.stdout, Stderr: l.stderr,
		SysProcAttr: sysProcAttr(),
	}
	if l.stdin != nil {
		cmd.Stdin = l.stdin
	}
	exited, err := start(cmd)
	if err != nil {
		return nil, startError(l.command, cmd, err)
	}
	return &plainProcess{cmd, exited}, nil
}

// A plainProcess is a process group, as far as its members stay in it.
type plainProcess struct {
	cmd    *exec.Cmd
	exited <-chan struct{}
}

func (p *plainProcess) ended() <-chan struct{} { return p.exited }
func (p *plainProcess) terminate()             { terminateGroup(p.cmd) }
func (p *plainProcess) hidden() int64          { return hiddenBelow(p.cmd.Process.Pid, true) }
func (p *plainProcess) kill()                  { killGroup(p.cmd) }

func (p *plainProcess) reap() ending {
	// What the program left running is killed before the program is reaped,
	// as long as its pid is certainly ours.
	killGroup(p.cmd)
	_ = p.cmd.Wait() // its answer is in ProcessState
	awaitGroup(p.cmd)
	return endOf(p.cmd.ProcessState)
}

// start starts the program; the channel is closed when it has ended, and not
// yet been reaped where [awaitExit] says so.
//
// The thread that starts it stays until then: Linux takes a parent to have
// died when that thread ends (see sysProcAttr), and Go ends threads.
func start(cmd *exec.Cmd) (exited <-chan struct{}, err error) {
	ended := make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			awaitExit(cmd)
			close(ended)
		}
	}()
	return ended, <-started
}

// startError sorts out why a program was not started.
func startError(c *sandbox.Command, cmd *exec.Cmd, err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return &sandbox.TooLargeError{What: allStrings, Size: spaceOf(cmd.Args, cmd.Env)}
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		if pe.Op == "chdir" {
			return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: pe.Err}
		}
		err = pe.Err
	}
	return &sandbox.StartError{Program: c.Program, Err: err}
}
