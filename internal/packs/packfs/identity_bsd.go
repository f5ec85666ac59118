//go:build darwin || freebsd || netbsd

package packfs

import (
	"io/fs"
	"syscall"
)

func identify(info fs.FileInfo) identity {
	id := identity{size: info.Size(), modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode = uint64(st.Dev), uint64(st.Ino)
		id.changed = st.Ctimespec.Nano()
	}
	return id
}
