//go:build unix && !linux

package tree

import (
	"io/fs"
	"syscall"
)

const nonblock = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

func system(m *Meta, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		m.Dev, m.Ino, m.Nlink, m.UID, m.GID = uint64(st.Dev), uint64(st.Ino), uint64(st.Nlink), st.Uid, st.Gid
		m.Blocks = int64(st.Blocks) * 512
		m.Ctime = changed(st)
	}
}
