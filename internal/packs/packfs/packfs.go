// Package packfs reads the files below one directory (a pack, or a chat's workspace)
// safely although others control its contents: no path leads out of it, only regular files
// are opened, no FIFO blocks, and every size is bounded.
//
// It writes only copies, asks nobody (see package gate), and does not hide any file below
// the directory, unless only one was requested; see [OpenFile].
package packfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Reasons in a [PathError].
var (
	ErrOutside    = errors.New("the path leads out of the directory")
	ErrNotFound   = errors.New("no such file or directory")
	ErrNotRegular = errors.New("not a regular file")
	ErrIsDir      = errors.New("is a directory")
	ErrNotDir     = errors.New("is not a directory")
	ErrOffset     = errors.New("the offset or length is negative, or past the end of the file")
	ErrHardLink   = errors.New("the file has a second name (hard link)")
	ErrChanged    = errors.New("the file changed while it was read")
	ErrLineBreak  = errors.New("the target of the link holds a line break")
	ErrOddName    = errors.New("the name holds control characters, or is not UTF-8")
	ErrReplaced   = errors.New("the folder is not the one that was found")
	errInMemory   = errors.New("the folder is not on the disk")
)

// A PathError says which path was refused, and why. Reason is one of the Err values above,
// a [*TooLargeError], or the system's error.
type PathError struct {
	Path   string // as the caller gave it
	Reason error
}

// maxPathText is how many bytes of a path an error shows.
const maxPathText = 200

func (e *PathError) Error() string {
	p := e.Path
	if r := []rune(p); len(r) > maxPathText {
		p = string(r[:maxPathText]) + "…"
	}
	reason := e.Reason
	// The system's own *fs.PathError repeats the path, and may name the directory.
	if inner, ok := errors.AsType[*fs.PathError](reason); ok {
		reason = inner.Err
	}
	return fmt.Sprintf("reading %q: %v", p, reason)
}

func (e *PathError) Unwrap() error { return e.Reason }

// Cause returns the innermost message of err without the path, for text that names the path
// itself.
func Cause(err error) string {
	if e, ok := errors.AsType[*PathError](err); ok {
		err = e.Reason
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// A TooLargeError says that a file or a whole tree exceeds a limit, in bytes unless Unit
// says otherwise.
type TooLargeError struct {
	Size, Limit int64
	Unit        string // "bytes" when empty
	Tree        bool   // the limit is that of a whole tree; see [Dir.LimitTree]
}

func (e *TooLargeError) Error() string {
	unit := e.Unit
	if unit == "" {
		unit = "bytes"
	}
	return fmt.Sprintf("too large: %d %s, and the limit is %d", e.Size, unit, e.Limit)
}

// An Option changes the behavior of a Dir.
type Option int

// RefuseHardLinks refuses every file that has more than one name: in a directory that a
// program may write to, the other name may be outside, which no path check can see.
const RefuseHardLinks Option = 1

// A Dir is one open directory. It stays the same directory if its path, or a parent, is
// renamed or replaced. It is safe for concurrent use.
type Dir struct {
	root            handle
	refuseHardLinks bool
	only            string // the only file that callers see; empty for all
	maxTree         int64  // see LimitTree
}

// Open opens the directory dir, following symlinks that lead to it.
func Open(dir string, options ...Option) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &PathError{dir, reason(err)}
	}
	d := &Dir{root: onDisk{root}}
	for _, o := range options {
		if o == RefuseHardLinks {
			d.refuseHardLinks = true
		}
	}
	return d, nil
}

// OpenSame opens the directory dir if it is the one that want describes, which [Dir.Info]
// returned earlier. It fails with [ErrReplaced] if there is another directory now, if a
// symlink leads to it, or if want is nil. If it or a parent was renamed, it is missing, not
// replaced.
//
// Directories are compared by device and inode. A new directory may get the inode of a
// removed one, but then it cannot have existed when want was taken.
func OpenSame(dir string, want os.FileInfo, options ...Option) (*Dir, error) {
	var which Which
	if want != nil {
		which = WhichOf(want)
	}
	return OpenWhich(dir, which, options...)
}

// OpenWhich is [OpenSame] for a caller that kept only a [Which].
func OpenWhich(dir string, want Which, options ...Option) (*Dir, error) {
	d, err := Open(dir, options...)
	if err != nil {
		return nil, err
	}
	if err := d.same(dir, want); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// same checks that d, which was opened at dir, is the directory want.
func (d *Dir) same(dir string, want Which) error {
	got, err := d.Which()
	if err != nil {
		return err
	}
	at, err := os.Lstat(dir)
	if err != nil {
		return &PathError{dir, reason(err)}
	}
	if !at.IsDir() || !got.Same(want) {
		return &PathError{dir, ErrReplaced}
	}
	return nil
}

// Info describes the directory itself, for [OpenSame]. It queries the open directory, so it
// does not matter where its path leads now.
func (d *Dir) Info() (os.FileInfo, error) {
	info, err := d.root.Stat(".")
	if err != nil {
		return nil, &PathError{".", reason(err)}
	}
	return info, nil
}

// Close releases the directory. Reads in progress may fail.
func (d *Dir) Close() error { return d.root.Close() }

// Clean returns name as a slash-separated path without "." and "..", or "." for the
// directory itself. An invalid name is an [ErrOutside]. The rules are the same on every
// system, so that a path means the same everywhere: no absolute path, no ".." that leaves,
// no backslash, no colon, no NUL.
func Clean(name string) (string, error) {
	if strings.ContainsAny(name, "\x00\\:") || strings.HasPrefix(name, "/") {
		return "", &PathError{name, ErrOutside}
	}
	clean := path.Clean(name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", &PathError{name, ErrOutside}
	}
	if runtime.GOOS == "windows" {
		// Windows drops these at the end of a name: "x." would be "x".
		for part := range strings.SplitSeq(clean, "/") {
			if part != "." && strings.HasSuffix(strings.TrimRight(part, " "), ".") || strings.HasSuffix(part, " ") {
				return "", &PathError{name, ErrOutside}
			}
		}
		if !filepath.IsLocal(clean) {
			return "", &PathError{name, ErrOutside}
		}
	}
	return clean, nil
}

// file opens a regular file for reading. The caller closes it.
func (d *Dir) file(name string) (file, fs.FileInfo, error) {
	clean, err := Clean(name)
	if err != nil {
		return nil, nil, err
	}
	if err := d.hides(clean); err != nil {
		return nil, nil, &PathError{name, err}
	}
	// Check before opening it, since opening a device can have effects.
	info, err := d.root.Stat(filepath.FromSlash(clean))
	if err != nil {
		return nil, nil, &PathError{name, reason(err)}
	}
	if err := regular(info); err != nil {
		return nil, nil, &PathError{name, err}
	}
	f, err := d.root.open(filepath.FromSlash(clean))
	if err != nil {
		return nil, nil, &PathError{name, reason(err)}
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(info)
	}
	if on, ok := f.(*os.File); ok && err == nil && d.refuseHardLinks && linkCount(on, info) > 1 {
		err = ErrHardLink
	}
	if err != nil {
		f.Close()
		return nil, nil, &PathError{name, err}
	}
	return f, info, nil
}

func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return ErrIsDir
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	return nil
}

// reason converts an error of os.Root into one of this package's.
func reason(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return ErrNotFound
	case errors.Is(err, syscall.ELOOP):
		return ErrNotRegular
	}
	inner, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err
	}
	if _, ok := errors.AsType[syscall.Errno](inner.Err); !ok && !errors.Is(inner.Err, fs.ErrClosed) {
		// os.Root exports no error for a path that escapes. Its errors that come from no system
		// call are about the path.
		return ErrOutside
	}
	return inner.Err
}

// ReadAll returns the whole content of a regular file of at most limit bytes. It must not
// be modified, since a [Memory] returns its own bytes.
func (d *Dir) ReadAll(name string, limit int64) ([]byte, error) {
	f, info, err := d.file(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, &PathError{name, &TooLargeError{Size: info.Size(), Limit: limit}}
	}
	if in, ok := f.(*memoryFile); ok {
		return slices.Clip(in.node.data), nil
	}
	// Space for the content and for detecting its end; otherwise the buffer grows ten times.
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	n, err := data.ReadFrom(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, &PathError{name, reason(err)}
	}
	if n > limit {
		return nil, &PathError{name, &TooLargeError{Size: n, Limit: limit}}
	}
	return data.Bytes(), nil
}

// ReadHead returns at most the first n bytes of a regular file, and the file's size.
func (d *Dir) ReadHead(name string, n int) (head []byte, size int64, err error) {
	head, info, err := d.ReadHeadInfo(name, n, nil)
	if err != nil {
		return nil, 0, err
	}
	return head, info.Size(), nil
}

// ReadHeadInfo is [Dir.ReadHead] with the file's information, taken from the open file
// before it is read. The bytes are in buffer if they fit, or those of a [Memory], which must
// not be modified.
func (d *Dir) ReadHeadInfo(name string, n int, buffer []byte) (head []byte, info fs.FileInfo, err error) {
	f, info, err := d.file(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if in, ok := f.(*memoryFile); ok {
		return slices.Clip(in.node.data[:min(n, len(in.node.data))]), info, nil
	}
	if size := min(int64(n), info.Size()); size <= int64(cap(buffer)) {
		head = buffer[:size]
	} else {
		head = make([]byte, size)
	}
	got, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, &PathError{name, reason(err)}
	}
	return head[:got], info, nil
}

// IsDir reports whether name is a directory. It follows symlinks that stay inside.
func (d *Dir) IsDir(name string) (bool, error) {
	clean, err := Clean(name)
	if err != nil {
		return false, err
	}
	if err := d.hides(clean); err != nil {
		return false, &PathError{name, err}
	}
	info, err := d.root.Stat(filepath.FromSlash(clean))
	if err != nil {
		return false, &PathError{name, reason(err)}
	}
	return info.IsDir(), nil
}
