package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// late says that files are made durable after they were staged.
const late = true

// syncAll makes everything on the file system of an open folder durable. It does
// nothing and returns false on a file system that is not known to wait for its disk,
// such as some network and user-space file systems, and before Linux 5.8, where syncfs
// does not report write errors (syncfs(2), "Errors").
func syncAll(dir *os.File) (bool, error) {
	var is unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &is); err != nil {
		return false, err
	}
	switch int64(is.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
	default:
		return false, nil
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false, err
	}
	release, _, _ := bytes.Cut(name.Release[:], []byte{0})
	var major, minor int
	if _, err := fmt.Sscanf(string(release), "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 8 {
		return false, nil
	}
	return true, unix.Syncfs(int(dir.Fd()))
}

// allocate reserves room for a file on its disk. It returns false if the file system
// cannot.
func allocate(f *os.File, size int64) (bool, error) {
	err := error(unix.EINTR) // some file systems give up when a signal comes
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return false, nil
	}
	return true, err
}
