package sandbox

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// ErrShutdown is the cause (see [context.Cause]) with which a server cancels contexts
// when it shuts down.
var ErrShutdown = errors.New("the server is shutting down")

// A CommandError says what is wrong with a [Command] or its [Policy]. Nothing
// was started. It holds no value of an argument or of the environment.
type CommandError struct {
	Problem string
	Folder  bool  // the problem is the working folder, the workspace, or an image's place
	Err     error // or nil
}

func (e *CommandError) Error() string {
	if e.Err != nil {
		return e.Problem + ": " + e.Err.Error()
	}
	return e.Problem
}

func (e *CommandError) Unwrap() error { return e.Err }

// A BusyError says that a run did not get its turn in time, because another run
// may change the same folders. Nothing was started.
type BusyError struct {
	Holder changes.Holder
	Waited time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("waited %s for %s", e.Waited, e.Holder)
}

// A TooLargeError says that the arguments and environment are larger than the system
// passes to a program. Nothing was started. It is [syscall.E2BIG].
type TooLargeError struct {
	What  string // "argument 3", "the arguments and the environment together"
	Size  int    // bytes
	Limit int    // bytes; 0 when only the system knows
}

func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("%s: too large for this system (%d bytes)", e.What, e.Size)
	}
	return fmt.Sprintf("%s: too large (%d bytes, the most is %d)", e.What, e.Size, e.Limit)
}

// Is reports whether target is [syscall.E2BIG].
func (e *TooLargeError) Is(target error) bool { return target == syscall.E2BIG }

// A StartError says that the system could not start a program. Err tells why:
// [fs.ErrPermission], [fs.ErrNotExist] (a script's interpreter, or a binary's
// loader, is missing), [syscall.ENOEXEC] (not a program, or one for another
// machine), or something else.
type StartError struct {
	Program program.Program
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("starting program %q (%q): %v", e.Program.Name, e.Program.Path, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// A ConfineError says that the sandbox could not be set up for a run, though
// the level was there when it was probed, or that the level cannot do what the
// [Policy] asks. Nothing was started.
type ConfineError struct {
	Level Level
	Step  string // the step that failed, such as "mount /usr"
	Err   error
}

func (e *ConfineError) Error() string {
	return fmt.Sprintf("sandbox level %s: %s: %v", e.Level, e.Step, e.Err)
}

func (e *ConfineError) Unwrap() error { return e.Err }
