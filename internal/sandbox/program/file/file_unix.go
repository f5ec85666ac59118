//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Executable says why the file at path cannot be run, or returns "". It also returns an
// error if the file was not found.
func Executable(path string) (problem string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return "does not exist", fs.ErrNotExist
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist", err
	case err != nil:
		return "cannot be reached: " + paths.Cause(err), err
	case info.IsDir():
		return "is a directory", nil
	case !info.Mode().IsRegular():
		return "is not a regular file", nil
	}
	err = unix.Access(path, unix.X_OK)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist", err // it was removed meanwhile
	case err != nil || info.Mode()&0o111 == 0:
		return "is not executable (chmod +x makes it so)", nil
	}
	return "", nil
}

// WritableByOthers reports whether any user may write to the file.
func WritableByOthers(info os.FileInfo) bool { return info.Mode()&0o002 != 0 }

// Fixed reports whether the user of this process can neither change the file at an
// absolute path nor put another one there. Root always can, so for root it reports
// whether no other user can.
func Fixed(path string) bool {
	uid := os.Getuid()
	for {
		info, err := os.Lstat(path)
		if err != nil {
			return false
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		// In a sticky folder, only the owner of a file replaces it.
		writable := info.Mode()&0o022 != 0 && info.Mode()&(os.ModeSymlink|os.ModeSticky) == 0
		if !ok || writable || uid != 0 && int(stat.Uid) == uid {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}

// SystemOwned reports whether only root can change the file at path, or put another one
// there: it is in a system folder, and root owns it and all folders above, and nobody else
// may write to them. Path is absolute and has no links.
func SystemOwned(path string) bool {
	if !paths.IsSystem(path) {
		return false
	}
	for {
		info, err := os.Lstat(path)
		if err != nil {
			return false
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || stat.Uid != 0 || info.Mode()&os.ModeSymlink != 0 || info.Mode()&0o022 != 0 {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}
