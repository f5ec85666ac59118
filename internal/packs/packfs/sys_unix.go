//go:build unix

package packfs

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags make open return at once, whatever the file is.
const openFlags = syscall.O_NONBLOCK | syscall.O_CLOEXEC | syscall.O_NOCTTY

// linkCount returns how many names an open file has.
func linkCount(_ *os.File, info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// Modes in a copy.
const (
	copiedFile    = 0o400
	copiedProgram = 0o500
	copiedDir     = 0o700 // so that it can be removed
)
