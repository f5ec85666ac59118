//go:build unix

package runfolder

import (
	"io/fs"
	"os"
	"syscall"
)

// Foreign says why a folder does not belong to the user; empty if it does.
func Foreign(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "has an owner that cannot be told"
	case int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	}
	return ""
}

// lock locks a file for as long as it is open, and reports whether it succeeded.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// abandoned reports whether a file that its writer would keep locked is
// unlocked. Where files cannot be locked, nothing is abandoned.
func (f *Folder) abandoned(name string, info fs.FileInfo, _ int) bool {
	file, err := f.root.OpenFile(name, OpenFlags, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	now, err := file.Stat()
	return err == nil && os.SameFile(info, now) && lock(file)
}

// shared reports whether others may use the folder.
func shared(info fs.FileInfo) bool { return info.Mode().Perm() != 0o700 }
