//go:build unix

package temp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Folder is a folder for temporary files. It is locked while it is in use, at most
// until this process ends, so that another server can tell it from a leftover.
type Folder struct {
	Path string
	lock *os.File
}

// New makes a temporary folder in an existing one; empty: the system's.
func New(parent string) (*Folder, error) {
	const attempts = 16
	for range attempts {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		lock, err := lockFolder(path)
		if err == nil {
			return &Folder{path, lock}, nil
		}
		// A starting server took it for a leftover.
		_ = os.Remove(path)
		if !errors.Is(err, errInUse) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("in %q, other servers remove every folder that is made", parent)
}

// Remove removes the folder with everything in it.
func (t *Folder) Remove() error {
	defer t.lock.Close()
	return removeFolder(t.Path)
}

// errInUse reports that a folder is locked or was replaced.
var errInUse = errors.New("the folder is in use")

// lockFolder locks the folder at a path. It does not follow a link.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errInUse
	}
	if err == nil {
		var at, have fs.FileInfo
		if at, err = os.Lstat(path); err == nil {
			have, err = f.Stat()
		}
		if err == nil && !os.SameFile(at, have) {
			err = errInUse
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Sweep removes from parent the folders whose server is gone; empty: from the system's
// temporary folder. It leaves links, files and other users' folders alone.
func Sweep(parent string) error {
	if parent == "" {
		parent = os.TempDir()
	}
	dir, err := os.Open(parent)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		number, ok := strings.CutPrefix(name, prefix)
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		err = errors.Join(err, sweepFolder(filepath.Join(parent, name)))
	}
	return err
}

// InUse reports whether the server that made the folder at path is still running. In
// doubt, it returns true.
func InUse(path string) bool {
	lock, err := lockFolder(path)
	if err == nil {
		_ = lock.Close()
		return false
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// sweepFolder removes a temporary folder of this user that nobody uses.
func sweepFolder(path string) error {
	if !ownFolder(path) {
		return nil
	}
	lock, err := lockFolder(path)
	if errors.Is(err, fs.ErrPermission) {
		_ = os.Chmod(path, 0o700) // its program may have removed the right
		lock, err = lockFolder(path)
	}
	if errors.Is(err, errInUse) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	return removeFolder(path)
}

// ownFolder reports whether path is a folder of this user, and whether nobody else
// could have put it there.
func ownFolder(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	parent, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return false
	}
	const others = 0o022
	if parent.Mode()&others != 0 && parent.Mode()&fs.ModeSticky == 0 {
		return false
	}
	for _, i := range []fs.FileInfo{info, parent} {
		st, ok := i.Sys().(*syscall.Stat_t)
		if !ok || int(st.Uid) != os.Geteuid() && (i == info || st.Uid != 0) {
			return false
		}
	}
	return true
}
