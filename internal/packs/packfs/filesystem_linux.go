package packfs

import (
	"slices"

	"golang.org/x/sys/unix"
)

// local are the file systems of which every change by this machine is an event,
// and leaves its mark on the times of the file and of its directory.
var local = []uint32{ // never modified
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, zfs, bcachefs,
}

// Two that come from elsewhere than the kernel's own list.
const (
	zfs      = 0x2fc12fc1
	bcachefs = 0xca451a4e
)

func isLocal(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	return isLocalType(int64(st.Type))
}

// isLocalType takes the number of a file system. It has 32 bits, the first of
// which systems with words of as many take for a sign.
func isLocalType(number int64) bool { return slices.Contains(local, uint32(number)) }
