package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// LookPath returns the path of a program on the user's PATH.
func LookPath(name string) (string, error) { return exec.LookPath(name) }

// A Process is a program that was started with pipes.
type Process struct {
	In   io.WriteCloser
	Out  io.Reader
	errs *tail
	cmd  *exec.Cmd
}

// Piped starts a program that the user's own settings name, to talk to it. It is
// killed when ctx ends.
func Piped(ctx context.Context, environ, argv []string) (*Process, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = environ
	const patience = 5 * time.Second // for pipes that a child keeps open
	cmd.WaitDelay = patience
	p := &Process{cmd: cmd, errs: new(tail)}
	cmd.Stderr = p.errs
	var err, errOut error
	p.In, err = cmd.StdinPipe()
	p.Out, errOut = cmd.StdoutPipe()
	if err := errors.Join(err, errOut, cmd.Start()); err != nil {
		return nil, fmt.Errorf("starting %q: %w", argv[0], err)
	}
	return p, nil
}

// Wait waits until the program ends. Call it once all of Out is read or not wanted any more.
func (p *Process) Wait() error { return p.cmd.Wait() }

// Err returns the end of what the program has written to standard error.
func (p *Process) Err() string { return p.errs.String() }

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text), "")
}
