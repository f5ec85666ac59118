package sandbox

import (
	"os"
	"syscall"
	"time"
)

func stampOf(info os.FileInfo) stamp {
	s := stamp{size: info.Size(), mode: info.Mode(), mod: info.ModTime(), changed: info.ModTime(), links: 1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.changed = time.Unix(st.Ctim.Unix())
		s.dev, s.ino, s.links, s.exact = st.Dev, st.Ino, uint64(st.Nlink), true
	}
	return s
}
