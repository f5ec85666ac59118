//go:build !unix

package approvals

import (
	"io/fs"
	"os"
	"time"
)

// foreign finds nothing: the folder's access control list, which is the user's
// own by default, decides here, and mode bits say nothing about it.
func foreign(fs.FileInfo) string { return "" }

// lock does nothing: a file that is open cannot get another name here.
func lock(*os.File) bool { return false }

// abandoned reports whether the process that announced itself by a file is gone,
// or, of another file, whether nobody accepts it any more.
func (f *folder) abandoned(_ string, info fs.FileInfo, pid int) bool {
	if pid > 0 {
		return processGone(pid)
	}
	return time.Since(info.ModTime()) > 2*entryTime
}

func shared(fs.FileInfo) bool { return false }
