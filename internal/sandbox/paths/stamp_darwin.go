package paths

import (
	"os"
	"syscall"
	"time"
)

func StampOf(info os.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), Mode: info.Mode(), Mod: info.ModTime(), Changed: info.ModTime(), Links: 1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Changed = time.Unix(st.Ctimespec.Unix())
		s.Dev, s.Ino, s.Links, s.Exact = uint64(st.Dev), st.Ino, uint64(st.Nlink), true
	}
	return s
}
