//go:build darwin || freebsd || netbsd

package private

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when the file's content or mode last changed. No program can set
// it, as it can the time of modification.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctimespec.Unix())
	}
	return time.Time{}
}
