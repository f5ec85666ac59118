package packfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A WriteError says what of a copy could not be written, and why.
type WriteError struct {
	Path string // in the copy, with slashes
	Err  error  // what the system said
}

func (e *WriteError) Error() string {
	p := e.Path
	if r := []rune(p); len(r) > maxPathText {
		p = string(r[:maxPathText]) + "…"
	}
	return fmt.Sprintf("writing %q: %v", p, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// CopyTo copies everything that [Dir.Digest] reads, and so nothing that it denies, into the empty directory
// to, and empty directories as well. The Tree is of the bytes that were
// written, so that the copy holds what its digest says whatever happens to d
// meanwhile.
//
// In the copy, files have the mode 0400, or 0500 when anybody may execute them
// in d, and directories below to 0700 (on Windows, nothing is read-only). Times
// of last change are as in d. Links are as they
// are.
//
// It fails as Digest does, and with a [*WriteError] when something cannot be
// written. What was copied until then is left for the caller to remove.
func (d *Dir) CopyTo(ctx context.Context, to *os.Root) (*Tree, error) {
	return d.walkTree(ctx, nil, to)
}

// copyDir copies the directory root, which is at the path at, to a new one
// called name.
func (w *treeWalk) copyDir(root, to *os.Root, at, name string, depth int) error {
	info, err := root.Stat(".")
	if err != nil {
		return &PathError{at, reason(err)}
	}
	if err := to.Mkdir(name, 0o700); err != nil {
		return &WriteError{at, bare(err)}
	}
	below, err := to.OpenRoot(name)
	if err != nil {
		return &WriteError{at, bare(err)}
	}
	defer below.Close()
	if err := w.dir(root, below, at, depth); err != nil {
		return err
	}
	if err := errors.Join(to.Chtimes(name, info.ModTime(), info.ModTime()), to.Chmod(name, copiedDir)); err != nil {
		return &WriteError{at, bare(err)}
	}
	return nil
}

// copyFile makes a file like the one of info. What is written to sink goes there
// and to h; done ends it.
func copyFile(h io.Writer, to *os.Root, name string, info fs.FileInfo) (sink io.Writer, done func() error, err error) {
	mode := fs.FileMode(copiedFile)
	if info.Mode()&0o111 != 0 {
		mode = copiedProgram
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, nil, &WriteError{Err: bare(err)}
	}
	done = func() error {
		err := out.Close()
		if err == nil {
			err = to.Chtimes(name, info.ModTime(), info.ModTime())
		}
		if err != nil {
			return &WriteError{Err: bare(err)}
		}
		return nil
	}
	return io.MultiWriter(h, writer{out}), done, nil
}

// A writer turns what writing fails with into a [*WriteError].
type writer struct{ io.Writer }

func (w writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		return n, &WriteError{Err: bare(err)}
	}
	return n, nil
}

// bare returns the system's own error without the path, which is one below
// some directory that only the caller knows.
func bare(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
