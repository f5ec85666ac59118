package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A UsageError reports an invalid command line.
type UsageError struct {
	Err  error
	Hint string
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// A HintedError says what to do now.
type HintedError struct {
	err  error
	Hint string
}

func (e *HintedError) Error() string { return e.err.Error() }

func (e *HintedError) Unwrap() error { return e.err }

// WithHint adds a hint about what to do to an error.
func WithHint(err error, format string, args ...any) error {
	return &HintedError{err: err, Hint: fmt.Sprintf(format, args...)}
}

// StatusRefused is the exit status of a command that a policy refused.
const StatusRefused = 4

// A StatusError is an error with an exit status of its own.
type StatusError struct {
	Err    error
	Status int
}

func (e *StatusError) Error() string { return e.Err.Error() }

func (e *StatusError) Unwrap() error { return e.Err }

// Report prints what went wrong and returns the exit status.
func (env *Env) Report(err error) int {
	if err == nil {
		return 0
	}
	status := 1
	if e, ok := errors.AsType[*StatusError](err); ok {
		status = e.Status
	}
	if errors.Is(err, ErrSaid) {
		return status
	}
	hint, text := "", err.Error()
	if e, ok := errors.AsType[*packs.NotFoundError](err); ok { // the hint names similar ids
		text = strings.Replace(text, e.Error(), (&packs.NotFoundError{ID: e.ID}).Error(), 1)
	}
	if e, ok := errors.AsType[*HintedError](err); ok {
		hint = e.Hint
	} else if e, ok := errors.AsType[*UsageError](err); ok {
		hint = e.Hint
	} else if e, ok := errors.AsType[*audit.UnsafeError](err); ok {
		hint = e.Hint
	} else if e, ok := errors.AsType[*packs.NotFoundError](err); ok {
		hint = hintForID(e)
	} else if _, ok := errors.AsType[*problem.Error](err); ok {
		hint = "correct it and run the command again; nothing was done"
	}
	screen := env.Screen(env.Stderr)
	for line := range strings.SplitSeq(strings.TrimRight(safetext.Text(text), "\n"), "\n") {
		fmt.Fprintf(screen, "packs-mcp: %s %s\n", screen.Style(Red, "error:"), line)
	}
	if hint != "" {
		fmt.Fprintf(screen, "packs-mcp: %s %s\n", screen.Style(Cyan, "hint:"), hint)
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return 2
	}
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return 2
	}
	return status
}

// besides returns the part of an error that is not about the canceled context, or
// nil.
func besides(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree of errors itself
	case interface{ Unwrap() error }:
		return besides(e.Unwrap())
	case interface{ Unwrap() []error }:
		var rest []error
		for _, one := range e.Unwrap() {
			rest = append(rest, besides(one))
		}
		return errors.Join(rest...)
	}
	return nil
}

// ErrSaid ends a command with status 1 after it has already printed everything.
var ErrSaid = errors.New("said")
