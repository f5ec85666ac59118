//go:build !unix

package runfolder

import (
	"io/fs"
	"os"
	"time"
)

// Foreign finds nothing: here the folder's access control list decides, which
// admits only the user by default, and mode bits do not show it.
func Foreign(fs.FileInfo) string { return "" }

// lock does nothing: an open file cannot be renamed here.
func lock(*os.File) bool { return false }

// abandoned reports whether the process that wrote an announcement is gone or,
// for any other file, whether it has expired.
func (f *Folder) abandoned(_ string, info fs.FileInfo, pid int) bool {
	if pid > 0 {
		return ProcessGone(pid)
	}
	return time.Since(info.ModTime()) > 2*EntryTime
}

func shared(fs.FileInfo) bool { return false }
