package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrNotBeside is returned if the folder of this program has no such program.
var ErrNotBeside = errors.New("there is no such program beside this one")

// Beside returns the path of another program of this project, in the folder of the
// running program. It looks nowhere else, since PATH and the working folder may belong
// to a project. If others could have put the program there, it returns an error.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	return besideOf(self, name)
}

func besideOf(self, name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(filepath.Dir(self), name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotBeside
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%q is not a regular file", path)
	}
	own, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	if problem := strangers(info, own); problem != "" {
		return "", fmt.Errorf("%q is not started: %s", path, problem)
	}
	return path, nil
}

// Answer starts a program of this project, writes a question to its standard input and
// returns its standard output. The program gets an empty environment and runs in its own
// folder, so that neither influences it. It is killed when ctx ends, or when it answers
// with more than most bytes.
func Answer(ctx context.Context, program string, question []byte, most int) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env, cmd.Dir = []string{}, filepath.Dir(program)
	const patience = 5 * time.Second // in case a child keeps pipes open
	cmd.WaitDelay = patience
	out, errs := &bounded{most: most, full: cancel}, new(tail)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(question), out, errs
	name := filepath.Base(program)
	err := cmd.Run()
	switch {
	case out.over:
		return nil, fmt.Errorf("%s answered with more than %d bytes", name, most)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer: %w", name, context.Cause(ctx))
	case err != nil:
		if text := strings.TrimSpace(errs.String()); text != "" {
			return nil, fmt.Errorf("%s failed: %w: %s", name, err, text)
		}
		return nil, fmt.Errorf("%s failed: %w", name, err)
	}
	return out.b.Bytes(), nil
}

// bounded keeps what is written, and calls full when it is too much.
type bounded struct {
	b    bytes.Buffer
	most int
	over bool // read after the program's end
	full func()
}

var errTooMuch = errors.New("too much output")

func (w *bounded) Write(p []byte) (int, error) {
	if w.b.Len()+len(p) > w.most {
		w.over = true
		w.full()
		return 0, errTooMuch
	}
	return w.b.Write(p)
}
