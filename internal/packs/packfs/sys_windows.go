package packfs

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags needs nothing more: Windows keeps no pipes in directories.
const openFlags = syscall.O_CLOEXEC

// linkCount returns how many names an open file has. If the system does not say, it returns
// two, so that doubt is refusal.
func linkCount(f *os.File, _ fs.FileInfo) uint64 {
	var d syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d); err != nil {
		return 2
	}
	return uint64(d.NumberOfLinks)
}

// identify returns no inode, so that nothing is remembered.
func identify(info fs.FileInfo) identity {
	return identity{size: info.Size(), modified: info.ModTime().UnixNano()}
}

// Modes in a copy. All permit writing: without that, Windows makes a file read-only, and it
// can neither be replaced nor removed.
const (
	copiedFile    = 0o600
	copiedProgram = 0o700
	copiedDir     = 0o700
)
