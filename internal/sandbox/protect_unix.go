//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// An owner is who a file belongs to.
type owner struct{ uid, gid int }

func ownerOf(info os.FileInfo) owner {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return owner{int(st.Uid), int(st.Gid)}
	}
	return owner{-1, -1} // chown(2) leaves both as they are
}
