//go:build unix

package launch

import (
	"io/fs"
	"os"
	"syscall"
)

// strangers says why someone who could not have changed this program may have put the
// other one there; empty if nobody could.
func strangers(program, self fs.FileInfo) string {
	its, ok := program.Sys().(*syscall.Stat_t)
	own, ok2 := self.Sys().(*syscall.Stat_t)
	const others = 0o002
	switch {
	case !ok || !ok2:
		return "its owner is not known"
	case its.Uid != 0 && its.Uid != own.Uid && int(its.Uid) != os.Geteuid():
		return "it belongs to another user"
	case program.Mode().Perm()&others != 0:
		return "every user can change it"
	}
	return ""
}
