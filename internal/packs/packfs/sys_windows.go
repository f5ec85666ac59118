package packfs

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags is empty: what an open could wait for has no place in a directory.
const openFlags = syscall.O_CLOEXEC

// linkCount returns how many names an open file has; when the system does not
// say, two, so that doubt refuses.
func linkCount(f *os.File, _ fs.FileInfo) uint64 {
	var d syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d); err != nil {
		return 2
	}
	return uint64(d.NumberOfLinks)
}

// identify gives no inode, so that nothing is remembered.
func identify(info fs.FileInfo) identity {
	return identity{size: info.Size(), modified: info.ModTime().UnixNano()}
}

// Modes of what is in a copy. They have all a right to write: without it, a file
// would be read-only, and then neither be replaced nor removed.
const (
	copiedFile    = 0o600
	copiedProgram = 0o700
	copiedDir     = 0o700
)
