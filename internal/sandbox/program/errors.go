package program

import (
	"fmt"
	"io/fs"
	"strings"
)

// A NotFoundError says that no program was found for a name. It is [fs.ErrNotExist].
type NotFoundError struct {
	Name     string
	NeededBy string   // the script whose first line names the program, when it is an interpreter
	Problem  string   // where it was looked for, or why it cannot be
	Near     []string // similar names on PATH, at most three
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	if e.NeededBy != "" {
		fmt.Fprintf(&b, "script %q needs ", e.NeededBy)
	}
	fmt.Fprintf(&b, "program %q: %s", e.Name, e.Problem)
	if len(e.Near) > 0 {
		fmt.Fprintf(&b, " (similar: %q)", e.Near)
	}
	return b.String()
}

func (e *NotFoundError) Unwrap() error { return fs.ErrNotExist }

// A NotExecutableError says that a file exists but cannot be run. It is
// [fs.ErrPermission].
type NotExecutableError struct {
	Name    string
	Path    string // absolute
	Problem string // "is a directory"
}

func (e *NotExecutableError) Error() string {
	return fmt.Sprintf("program %q: %q %s", e.Name, e.Path, e.Problem)
}

func (e *NotExecutableError) Unwrap() error { return fs.ErrPermission }

// A ChangedError says that a program changed since it was looked up, so it was not
// started. It is about the program's interpreter when Path is the interpreter's.
type ChangedError struct {
	Name string // of the program
	Path string // of the file that changed
	Err  error  // why it cannot be compared; nil if its bytes or its place differ
}

func (e *ChangedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("program %q: %q changed after it was looked up: %v", e.Name, e.Path, e.Err)
	}
	return fmt.Sprintf("program %q: %q changed after it was looked up", e.Name, e.Path)
}

func (e *ChangedError) Unwrap() error { return e.Err }
