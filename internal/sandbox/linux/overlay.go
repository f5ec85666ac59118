//go:build linux && (amd64 || arm64)

package linux

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// maxOwners is how many of a folder's entries have their owners checked.
const maxOwners = 1000

func (s *confiner) Overlays(dir string, was sandbox.Look) (now sandbox.Look, why string) {
	switch {
	case !s.namespaces:
		return sandbox.Look{}, level.NoNamespaces
	case s.overlay != "":
		return sandbox.Look{}, s.overlay
	}
	points, changes, err := s.mounts.list()
	if err != nil {
		return sandbox.Look{}, "what is mounted in it is not known: " + err.Error()
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return sandbox.Look{}, "it cannot be opened: " + err.Error()
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return sandbox.Look{}, "it cannot be examined: " + err.Error()
	}
	now = sandbox.Look{Dev: uint64(st.Dev), Ino: st.Ino, Changed: st.Ctim.Nano(), Mounts: changes}
	if now == was {
		return now, ""
	}
	if name := foreign(fd); name != "" {
		return sandbox.Look{}, "it is on " + name
	}
	if at := mountBelow(points, dir); at != "" {
		return sandbox.Look{}, fmt.Sprintf("something is mounted in it, at %q", at)
	}
	if folds(fd) {
		return sandbox.Look{}, "its names do not tell case"
	}
	if name := stranger(f, &st); name != "" {
		return sandbox.Look{}, fmt.Sprintf("%q belongs to another user or group", filepath.Join(dir, name))
	}
	return now, ""
}

// foreign returns the name of the folder's file system if overlays on it are
// unreliable.
func foreign(fd int) string {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return "a file system that cannot be asked: " + err.Error()
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.SMB_SUPER_MAGIC:
		return "SMB"
	case unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC:
		return "a network file system"
	case unix.ECRYPTFS_SUPER_MAGIC:
		return "eCryptfs"
	}
	return ""
}

// mountBelow returns a mount point below dir, which an overlay would leave out, or ""
// if there is none.
func mountBelow(points []string, dir string) string {
	for _, at := range points {
		if at != dir && paths.Inside([]string{dir}, at) {
			return at
		}
	}
	return ""
}

// folds reports whether the folder compares names without regard to case.
func folds(fd int) bool {
	const casefold = 0x40000000 // FS_CASEFOLD_FL
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefold != 0
}

// stranger returns a name whose owner or group has no id inside the run: "." for the
// folder itself, or an entry directly in it. It does not look for other users'
// entries further down, which the run cannot change.
func stranger(dir *os.File, st *unix.Stat_t) string {
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	if uid == 0 {
		return "" // root has every id; see package confine
	}
	if st.Uid != uid || st.Gid != gid {
		return "."
	}
	first := ""
	names, _ := dir.Readdirnames(maxOwners)
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) // an error means it is gone
		if err == nil && (st.Uid != uid || st.Gid != gid) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}
