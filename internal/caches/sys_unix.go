//go:build unix

package caches

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow keeps a lock from being one somewhere else.
const noFollow = syscall.O_NOFOLLOW

// ownedByUs reports whether a file belongs to the user that this process acts for.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(st.Uid) == int64(os.Geteuid())
}

// openToOthers reports whether another user may look into a folder.
func openToOthers(info fs.FileInfo) bool { return info.Mode()&0o077 != 0 }
