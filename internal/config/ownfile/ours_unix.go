//go:build unix

package ownfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// notOurs says why others could have written an open file, or "".
func notOurs(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its owner cannot be told"
	}
	return notOurMode(info.Mode(), st.Uid, st.Gid, uint32(os.Geteuid()))
}

// notOurMode is notOurs for a file with the given mode, owner and group. A group
// with the same number as the owner is the owner's private group: many systems
// create one for each user, and set a umask that lets it write.
func notOurMode(mode fs.FileMode, owner, group, user uint32) string {
	switch {
	case owner != user && owner != 0:
		return fmt.Sprintf("belongs to another user (number %d); make it yours with chown, and chmod 600", owner)
	case mode&0o002 != 0:
		return fmt.Sprintf("can be changed by every user of this machine (mode %04o); chmod 600 makes it yours alone", mode.Perm())
	case mode&0o020 != 0 && group != owner:
		return fmt.Sprintf("can be changed by the users of group %d (mode %04o); chmod g-w makes it yours alone", group, mode.Perm())
	}
	return ""
}
