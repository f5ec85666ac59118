package packfs

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestLocalFileSystems(t *testing.T) {
	for number, want := range map[uint32]bool{
		unix.EXT4_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.F2FS_SUPER_MAGIC: true, bcachefs: true,
		unix.NFS_SUPER_MAGIC: false, unix.CIFS_SUPER_MAGIC: false, unix.FUSE_SUPER_MAGIC: false,
	} {
		// As 64-bit and 32-bit systems report it.
		if got, same := isLocalType(int64(number)), isLocalType(int64(int32(number))); got != want || same != want {
			t.Errorf("%#x: %v, and on 32 bits %v, want %v", number, got, same, want)
		}
	}
}
