//go:build unix

package approvals

import (
	"io/fs"
	"os"
	"syscall"
)

// foreign says why a folder is not the user's own; empty when it is.
func foreign(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "has an owner that cannot be told"
	case int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	}
	return ""
}

// shared reports whether others may use the folder.
func shared(info fs.FileInfo) bool { return info.Mode().Perm() != 0o700 }
