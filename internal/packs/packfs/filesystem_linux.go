package packfs

import (
	"slices"

	"golang.org/x/sys/unix"
)

// local lists the file systems on which every change by this machine causes an event, and
// changes the times of the file and of its directory.
var local = []uint32{ // never modified
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, zfs, bcachefs,
}

// The kernel's header does not define these two.
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

// isLocalType takes the magic number of a file system, which has 32 bits. Systems with
// 32-bit words may sign-extend it.
func isLocalType(number int64) bool { return slices.Contains(local, uint32(number)) }
