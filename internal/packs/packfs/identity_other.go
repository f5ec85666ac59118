//go:build unix && !linux && !darwin && !freebsd && !netbsd

package packfs

import (
	"io/fs"
	"syscall"
)

// identify omits the inode change time, whose field has a different name on each of these
// systems.
func identify(info fs.FileInfo) identity {
	id := identity{size: info.Size(), modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode = uint64(st.Dev), uint64(st.Ino)
	}
	return id
}
