//go:build unix

package runner

import (
	"os"
	"syscall"
)

// sameDevice reports whether two files are on the same file system.
func sameDevice(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, ok2 := b.Sys().(*syscall.Stat_t)
	return ok && ok2 && x.Dev == y.Dev
}
