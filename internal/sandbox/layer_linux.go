//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// maxOwners is how many names of a folder are looked at for their owners.
const maxOwners = 1000

func (s *confiner) overlays(dir string) string {
	switch {
	case !s.namespaces:
		return noNamespaces
	case s.overlay != "":
		return s.overlay
	}
	if name := foreign(dir); name != "" {
		return "it is on " + name
	}
	if at := mountBelow(dir); at != "" {
		return fmt.Sprintf("something is mounted in it, at %q", at)
	}
	if folds(dir) {
		return "its names do not tell case"
	}
	if who := stranger(dir); who != "" {
		return fmt.Sprintf("%q belongs to another user or group", who)
	}
	return ""
}

// foreign names the file system that dir is on, when what an overlay shows of
// it would not be reliable.
func foreign(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
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

// mountBelow returns a place below dir where something is mounted, which an
// overlay would leave out; empty: there is none, and the list could be read.
func mountBelow(dir string) string {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "an unknown place"
	}
	// proc_pid_mountinfo(5): ID PARENT MAJOR:MINOR ROOT MOUNTPOINT …
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := unescape.Replace(fields[4])
		if at != dir && paths.Inside([]string{dir}, at) {
			return at
		}
	}
	return ""
}

// folds reports whether the names in dir are compared without case.
func folds(dir string) bool {
	const casefold = 0x40000000 // FS_CASEFOLD_FL
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // what cannot be read cannot be layered either, and says so
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefold != 0
}

// stranger returns a name whose owner or group a run has no id for: the folder
// itself, or one of those directly in it. What belongs to others further down is
// not found here, and cannot be changed by the run.
func stranger(dir string) string {
	if os.Getuid() == 0 {
		return "" // who has every id; see package confine
	}
	ours := func(name string) bool {
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return true // gone
		}
		return int(st.Uid) == os.Getuid() && int(st.Gid) == os.Getgid()
	}
	if !ours(dir) {
		return dir
	}
	d, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxOwners)
	slices.Sort(names)
	for _, name := range names {
		if path := filepath.Join(dir, name); !ours(path) {
			return path
		}
	}
	return ""
}
