//go:build linux && (amd64 || arm64)

package supervised

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Access rights that Landlock rules allow. None of them allows making devices.
const (
	AccessRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	AccessWrite = AccessRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO

	AccessDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// AccessFile holds the rights that apply to files. The kernel refuses other rights
	// in a rule for a file.
	AccessFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// Devices returns the devices that every program may use. /dev/tty is safe: a program
// has no controlling terminal except one that it made itself.
func Devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

// LandlockABI returns the kernel's Landlock ABI; 0: it has none.
func LandlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// Restrict makes Landlock refuse what no rule of r allows and, without a network, TCP
// and UDP, as far as the kernel's ABI supports it. With ABI 0, r becomes empty.
func Restrict(r *confine.Ruleset, abi int, network bool) {
	if abi == 0 {
		*r = confine.Ruleset{}
		return
	}
	const first = 1<<13 - 1 // EXECUTE to MAKE_SYM, of ABI 1
	r.FS = first
	for _, later := range []struct {
		abi    int
		fs     uint64
		net    uint64
		scoped uint64
	}{
		{abi: 2, fs: unix.LANDLOCK_ACCESS_FS_REFER},
		{abi: 3, fs: unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{abi: 4, net: unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		{abi: 5, fs: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{abi: 6, scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL},
		{abi: 9, fs: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX},
		{abi: 10, net: unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP},
	} {
		if abi < later.abi {
			break
		}
		r.FS |= later.fs
		r.Scoped |= later.scoped
		if !network {
			r.Net |= later.net
		}
	}
}

// SetLimits gives j the limits that the kernel enforces.
func SetLimits(j *confine.Job, limits sandbox.Limits) {
	j.TmpSize = limits.Workspace
	j.Layer = confine.TmpfsLimits{Bytes: limits.Layer, Names: int64(limits.LayerNames)}
	j.Limits = confine.Limits{
		CPU: int64((limits.CPU + time.Second - 1) / time.Second), Data: limits.Memory,
		Processes: int64(limits.Processes), Files: int64(limits.OpenFiles), FileSize: limits.FileSize,
	}
}

// PieceOf returns how many bytes of shared memory one mapping may have when mappings
// are not counted together: the memory limit divided by the number of processes that
// a run may have.
func PieceOf(limits sandbox.Limits) int64 {
	if limits.Memory <= 0 {
		return 0
	}
	return max(limits.Memory/max(int64(limits.Processes), 1), int64(os.Getpagesize()))
}

// StateOf returns the state that the kernel reports for a file with the stamp s. It
// is zero if another file could have that stamp.
func StateOf(s paths.Stamp) confine.State {
	if !s.Exact {
		return confine.State{}
	}
	return confine.State{
		ID: idOfNumbers(s.Dev, s.Ino), Size: uint64(s.Size),
		Seconds: uint64(s.Changed.Unix()), Nanoseconds: uint64(s.Changed.Nanosecond()),
	}
}

func idOfNumbers(dev, ino uint64) confine.ID {
	return confine.ID{Dev: uint64(unix.Major(dev))<<32 | uint64(unix.Minor(dev)), Ino: ino}
}

// IDOf returns the identity of a file or folder; zero for nil.
func IDOf(info os.FileInfo) confine.ID {
	if info == nil {
		return confine.ID{}
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return confine.ID{}
	}
	return idOfNumbers(uint64(st.Dev), st.Ino)
}
