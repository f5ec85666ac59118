//go:build unix

package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// onDisk returns how many bytes of the disk a file takes: at most its size, unless
// space beyond its end was allocated. The number of names bounds the space for
// metadata.
func onDisk(info os.FileInfo) int64 {
	const block = 4096
	size := info.Size()
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return size
	}
	takes := st.Blocks * 512
	switch {
	case info.IsDir():
		return max(takes-block, 0)
	case takes <= size+block:
		return min(takes, size)
	}
	return takes
}

// severalNames returns the file's id, and reports whether it has more than one name.
func severalNames(info os.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.IsDir() || st.Nlink < 2 {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), st.Ino}, true //nolint:unconvert // of another type elsewhere
}

// freeSpace returns how many bytes an unprivileged user can still write to dir's disk.
func freeSpace(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // of other types elsewhere
}
