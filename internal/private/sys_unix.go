//go:build unix

package private

import (
	"io/fs"
	"os"
	"syscall"
)

const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC

const (
	writableByOthers fs.FileMode = 0o022
	readableByOthers fs.FileMode = 0o044
	accessForOthers  fs.FileMode = 0o077
)

// ownedByUs reports whether the file belongs to this user or to root, which can
// write anything anyway.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == os.Geteuid() || st.Uid == 0)
}

// folderOpen reports whether others may put files into a folder. A group with
// the same number as the owner is the owner's private group: many systems create
// one for each user, and set a umask that lets it write.
func folderOpen(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && st.Gid != st.Uid
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
