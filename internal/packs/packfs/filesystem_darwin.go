package packfs

import "golang.org/x/sys/unix"

func isLocal(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	return name == "apfs" || name == "hfs"
}
