//go:build unix

package audit

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep open from following a link that replaced the file, and from
// waiting on a named pipe.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// checkAccess returns what makes fi's file unsafe, and the remedy.
func checkAccess(path string, fi fs.FileInfo) (reason, hint string) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return "belongs to another user", "remove it, or choose another path"
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return "can be accessed by other users (mode " + fi.Mode().Perm().String() + ")",
			"check that nobody changed it, then run chmod 600 " + quote(path)
	}
	return "", ""
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
