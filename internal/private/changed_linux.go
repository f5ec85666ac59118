package private

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when the file's content or mode last changed. Programs can
// set the modification time, but not this one.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
