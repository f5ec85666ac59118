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

// A WriteError says which part of a copy could not be written, and why.
type WriteError struct {
	Path string // in the copy, with slashes
	Err  error  // the system's error
}

func (e *WriteError) Error() string {
	p := e.Path
	if r := []rune(p); len(r) > maxPathText {
		p = string(r[:maxPathText]) + "…"
	}
	return fmt.Sprintf("writing %q: %v", p, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// CopyTo copies everything that [Dir.Digest] reads, and also empty directories, into the
// empty directory to. It does not copy denied entries. The Tree describes the bytes that
// were written, so the copy matches its digest even if d changes meanwhile.
//
// In the copy, files have mode 0400, or 0500 if anyone may execute them in d, and
// subdirectories 0700. (On Windows, nothing is read-only.) Modification times and links
// are as in d.
//
// It fails as Digest does, and with a [*WriteError] if something cannot be written. The
// caller must remove an incomplete copy.
func (d *Dir) CopyTo(ctx context.Context, to *os.Root) (*Tree, error) {
	return d.walkTree(ctx, nil, to)
}

// copyDir copies the directory root, whose path is at, to a new one called name.
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

// copyFile creates a file like the one that info describes. Writes to sink go to the file
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

// A writer turns write errors into [*WriteError].
type writer struct{ io.Writer }

func (w writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		return n, &WriteError{Err: bare(err)}
	}
	return n, nil
}

// bare returns the system's error without the path, which is relative to a directory that
// only the caller knows.
func bare(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
