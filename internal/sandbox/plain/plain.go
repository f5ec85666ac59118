// Package plain starts programs at [sandbox.LevelNone], which every system has: in a
// session and process group of their own, and otherwise as the user would.
//
// It confines nothing. A process that leaves the process group outlives the run.
package plain

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

// A Starter starts programs at [sandbox.LevelNone]: in a session and process group
// of their own, and otherwise as the user would.
type Starter struct{}

func (Starter) TempDir() string { return "" }

func (Starter) Places() bool { return false }

func (Starter) Overlays(string, sandbox.Look) (sandbox.Look, string) {
	return sandbox.Look{}, level.NoNamespaces
}

func (Starter) Close() {}

func (Starter) Start(l *level.Launch) (level.Process, error) {
	cmd := &exec.Cmd{
		Path: l.Argv[0], Args: l.Argv, Dir: l.Command.Dir, Env: l.Env,
		Stdout: l.Stdout, Stderr: l.Stderr,
		SysProcAttr: sysProcAttr(),
	}
	if l.Stdin != nil {
		cmd.Stdin = l.Stdin
	}
	exited, err := start(cmd)
	if err != nil {
		return nil, startError(l.Command, cmd, err)
	}
	return &process{cmd, exited}, nil
}

// A process is a program and its process group, as far as its members stay in it.
type process struct {
	cmd    *exec.Cmd
	exited <-chan struct{}
}

func (p *process) Ended() <-chan struct{} { return p.exited }
func (p *process) Terminate()             { terminateGroup(p.cmd) }
func (p *process) Hidden() int64          { return disk.HiddenBelow(p.cmd.Process.Pid, true) }
func (p *process) Kill()                  { killGroup(p.cmd) }

func (p *process) Reap() level.Ending {
	// Kill what the program left running before reaping the program, while its pid
	// is certainly still ours.
	killGroup(p.cmd)
	_ = p.cmd.Wait() // the result is in ProcessState
	awaitGroup(p.cmd)
	return endOf(p.cmd.ProcessState)
}

// start starts the program. It closes the channel when the program has ended, on some
// systems before it is reaped; see [awaitExit].
//
// The thread that starts the program lives until then: to Linux, a parent dies with
// the thread that forked (see sysProcAttr), and Go ends threads.
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

// startError returns why a program was not started.
func startError(c *sandbox.Command, cmd *exec.Cmd, err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return level.TooLarge(cmd.Args, cmd.Env)
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		if pe.Op == "chdir" {
			return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: pe.Err}
		}
		err = pe.Err
	}
	return &sandbox.StartError{Program: c.Program, Err: err}
}
