package private

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A FolderError says why a [Folder] cannot be used. Nothing in it was changed.
type FolderError struct {
	What    string // what the folder holds: "private copies of packs"
	Path    string
	Problem string // "is a symbolic link"
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("the folder %q of %s %s", e.Path, e.What, e.Problem)
}

// A Folder is a folder that only its user may enter, and whose entries several
// servers add, use and remove. Its methods are safe for concurrent use,
// including by several processes.
type Folder struct {
	Path string // absolute
	What string // what it holds, for errors: "private copies of packs"

	mu sync.Mutex // separates the goroutines of this process, which share its file lock
}

// folderLock is the file in a Folder that [Folder.Alone] locks.
const folderLock = "lock"

// retryLock is the time between two attempts to take the lock of a Folder.
const retryLock = time.Millisecond

// Open opens the folder, and creates it if it does not exist. The Root's name is
// its path without symbolic links. The error is a [*FolderError].
func (f *Folder) Open() (*os.Root, error) {
	if !filepath.IsAbs(f.Path) {
		return nil, f.refuse("is not an absolute path")
	}
	at, err := os.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(f.Path, 0o700); err != nil {
			return nil, f.refuse("cannot be made: " + Cause(err))
		}
		at, err = os.Lstat(f.Path)
	}
	if err != nil {
		return nil, f.refuse("cannot be examined: " + Cause(err))
	}
	if problem := FolderProblem(at); problem != "" {
		return nil, f.refuse(problem)
	}
	if OpenToOthers(at) {
		return nil, f.refuse("is open to other users; close it with chmod 700")
	}
	path, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return nil, f.refuse("cannot be examined: " + Cause(err))
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, f.refuse("cannot be opened: " + Cause(err))
	}
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, at) {
		_ = root.Close()
		return nil, f.refuse("changed while it was opened")
	}
	return root, nil
}

// OpenExisting is [Folder.Open], but does not create the folder: if it does not
// exist, both results are nil.
func (f *Folder) OpenExisting() (*os.Root, error) {
	if _, err := os.Lstat(f.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f.Open()
}

// Alone calls do while no other call of Alone for this folder, in any process,
// runs. root is the folder. do must be short: others wait some seconds and then
// fail. The error is do's, a [*FolderError], or ctx's cause.
func (f *Folder) Alone(ctx context.Context, root *os.Root, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, f.refuse("is locked by another server; call again"))
	defer cancel()
	lock := LockIn(root, folderLock)
	defer lock.Close()
	if _, err := lock.TryLockContext(ctx, retryLock); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return f.refuse("cannot be locked: " + Cause(err))
	}
	return do()
}

func (f *Folder) refuse(problem string) error {
	return &FolderError{What: f.What, Path: f.Path, Problem: problem}
}

// LockIn returns the lock in the file called name, not yet taken. It does not
// follow a symbolic link in the file's place, or wait for a pipe.
func LockIn(root *os.Root, name string) *flock.Flock {
	return flock.New(filepath.Join(root.Name(), name), flock.SetFlag(os.O_CREATE|os.O_RDWR|openFlags), flock.SetPermissions(0o600))
}

// FolderProblem returns why info, which is from [os.Lstat], is not a folder of
// this user, such as "is a symbolic link", or "".
func FolderProblem(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case !info.IsDir():
		return "is not a folder"
	case !ownedByUs(info):
		return "belongs to another user"
	}
	return ""
}

// OpenToOthers reports whether other users may access a folder. It returns false on
// systems where file modes mean nothing.
func OpenToOthers(folder fs.FileInfo) bool { return folder.Mode().Perm()&accessForOthers != 0 }

// Cause returns the text of err without the path, for a caller that names the
// path itself.
func Cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// DiskFull reports whether err means that there was no space to write.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
