//go:build amd64 || arm64

package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The test interprets the filter as the kernel would, for calls that are harmful to
// make from a test.
func TestFilter(t *testing.T) {
	const allowed = "allowed"
	tests := []struct {
		name   string
		filter Filter
		nr     int
		args   []uint64
		want   string
	}{
		{"read", Filter{}, unix.SYS_READ, nil, allowed},
		{"clone3", Filter{}, unix.SYS_CLONE3, nil, "ENOSYS"},
		{"reboot", Filter{}, unix.SYS_REBOOT, nil, "EPERM"},
		{"kexec", Filter{}, unix.SYS_KEXEC_LOAD, nil, "EPERM"},
		{"a call that is newer than the filter", Filter{}, lastJudged + 1, nil, "ENOSYS"},
		{"x32", Filter{}, 0x40000000 | unix.SYS_READ, nil, "ENOSYS"},
		{"fork", Filter{}, unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, allowed},
		{"a user namespace", Filter{}, unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, "EPERM"},
		{"a user namespace and garbage above", Filter{}, unix.SYS_CLONE, []uint64{1<<40 | unix.CLONE_NEWUSER}, "EPERM"},
		{"a time namespace", Filter{}, unix.SYS_UNSHARE, []uint64{0x80}, "EPERM"},
		{"unshare files", Filter{}, unix.SYS_UNSHARE, []uint64{unix.CLONE_FILES}, allowed},
		{"type into a terminal", Filter{}, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, "EPERM"},
		{"the same with garbage above", Filter{}, unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, "EPERM"},
		{"ask a terminal", Filter{}, unix.SYS_IOCTL, []uint64{0, unix.TCGETS}, allowed},
		{"own limits", Filter{}, unix.SYS_PRLIMIT64, []uint64{0}, allowed},
		{"limits of others", Filter{}, unix.SYS_PRLIMIT64, []uint64{4711}, "EPERM"},
		{"ask for the limit of core files", Filter{}, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 0, 1}, allowed},
		{"set the limit of core files", Filter{}, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 8}, "done"},
		{"the same from a high address", Filter{}, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 1 << 32}, "done"},
		{"the same with the old call", Filter{}, unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_CORE, 8}, "done"},
		{"set another limit", Filter{}, unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 8}, allowed},

		{"private memory", Filter{}, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, allowed},
		{"shared memory", Filter{}, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, "asked"},
		{"shared memory, validated", Filter{}, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED_VALIDATE, 3}, "asked"},
		{"memory like a stack", Filter{}, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_GROWSDOWN}, "ENOMEM"},
		{"huge pages", Filter{}, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED | unix.MAP_HUGETLB}, "ENOMEM"},
		{"memory as a file", Filter{}, unix.SYS_MEMFD_CREATE, nil, "ENOSYS"},
		{"System V memory", Filter{}, unix.SYS_SHMGET, []uint64{0, 4096, 0o600}, "asked"},
		{"System V memory of huge pages", Filter{}, unix.SYS_SHMGET, []uint64{0, 4096, 0o4600}, "ENOMEM"},
		{"alone: System V memory", Filter{Alone: true}, unix.SYS_SHMGET, []uint64{0, 4096, 0o600}, "EPERM"},
		{"alone: inotify", Filter{Alone: true}, unix.SYS_INOTIFY_INIT1, nil, "asked"},
		{"no listener: shared memory", Filter{NoListener: true, Piece: 8192}, unix.SYS_MMAP, []uint64{0, 8192, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, allowed},
		{"no listener: too much of it", Filter{NoListener: true, Piece: 8192}, unix.SYS_MMAP, []uint64{0, 8193, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, "ENOMEM"},
		{"no listener: far too much", Filter{NoListener: true, Piece: 8192}, unix.SYS_MMAP, []uint64{0, 1 << 32, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, "ENOMEM"},
		{"no listener: validated", Filter{NoListener: true, Piece: 8192}, unix.SYS_MMAP, []uint64{0, 8193, 3, unix.MAP_SHARED_VALIDATE | unix.MAP_ANONYMOUS}, "ENOMEM"},
		{"no listener: more than 4 GiB for each", Filter{NoListener: true, Piece: 1 << 40}, unix.SYS_MMAP, []uint64{0, 1 << 32, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, "ENOMEM"},
		{"no listener: no limit", Filter{NoListener: true}, unix.SYS_MMAP, []uint64{0, 1 << 32, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, allowed},
		{"no listener: a large file", Filter{NoListener: true, Piece: 8192}, unix.SYS_MMAP, []uint64{0, 1 << 33, 3, unix.MAP_SHARED, 3}, allowed},
		{"no listener: private memory", Filter{NoListener: true, Piece: 8192}, unix.SYS_MMAP, []uint64{0, 1 << 33, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, allowed},
		{"no listener: huge pages", Filter{NoListener: true, Piece: 8192}, unix.SYS_MMAP, []uint64{0, 4096, 3, unix.MAP_SHARED | unix.MAP_HUGETLB}, "ENOMEM"},
		{"no listener: System V memory", Filter{NoListener: true, Piece: 8192}, unix.SYS_SHMGET, []uint64{0, 4096, 0o600}, "ENOSPC"},
		{"no listener: a queue", Filter{NoListener: true, Piece: 8192}, unix.SYS_MSGGET, nil, "ENOSPC"},
		{"no listener: semaphores", Filter{NoListener: true, Piece: 8192}, unix.SYS_SEMGET, nil, "ENOSPC"},
		{"no listener, alone: inotify", Filter{NoListener: true, Alone: true}, unix.SYS_INOTIFY_INIT1, nil, "EMFILE"},
		{"no listener, alone: an inotify watch", Filter{NoListener: true, Alone: true}, unix.SYS_INOTIFY_ADD_WATCH, nil, "ENOSPC"},
		{"inotify", Filter{}, unix.SYS_INOTIFY_INIT1, nil, allowed},

		{"a POSIX message queue", Filter{}, unix.SYS_MQ_OPEN, nil, allowed},
		{"no queues: a POSIX message queue", Filter{NoQueues: true}, unix.SYS_MQ_OPEN, nil, "EMFILE"},

		{"a lease", Filter{}, unix.SYS_FCNTL, []uint64{3, unix.F_SETLEASE, 1}, "EPERM"},
		{"notices of a folder", Filter{}, unix.SYS_FCNTL, []uint64{3, unix.F_NOTIFY, 1}, "EPERM"},
		{"a lock", Filter{}, unix.SYS_FCNTL, []uint64{3, unix.F_SETLK, 1}, allowed},
		{"copy a descriptor", Filter{}, unix.SYS_FCNTL, []uint64{3, unix.F_DUPFD_CLOEXEC, 1}, allowed},
		{"what came later", Filter{}, unix.SYS_FCNTL, []uint64{3, 1041, 1}, "EINVAL"},
		{"a large pipe", Filter{}, unix.SYS_FCNTL, []uint64{3, unix.F_SETPIPE_SZ, 1 << 20}, "EPERM"},
		{"a usual pipe", Filter{}, unix.SYS_FCNTL, []uint64{3, unix.F_SETPIPE_SZ, 64 << 10}, allowed},
		{"own a file", Filter{}, unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN, 1}, allowed},
		{"no scope: own a file", Filter{Alone: true, NoScope: true}, unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN, 1}, "EPERM"},
		{"own a file (ioctl)", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x8901}, "EPERM"},

		{"a set-ID file without a name", Filter{}, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o2755}, "EPERM"},
		{"a file without a name", Filter{}, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o755}, allowed},
		{"a folder, with what is no mode", Filter{}, unix.SYS_OPENAT, []uint64{0, 0, unix.O_DIRECTORY, 0o7777}, allowed},
		{"an attribute, as of Linux 6.13", Filter{}, unix.SYS_SETXATTRAT, nil, "ENOTSUP"},
		{"taking an attribute away", Filter{}, unix.SYS_FREMOVEXATTR, nil, "ENOTSUP"},
		{"what a file system keeps of a file", Filter{}, unix.SYS_FILE_SETATTR, nil, "ENOTSUP"},
		{"the same (ioctl)", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x40086602}, "EPERM"},
		{"make a file read-only for good", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x40806685}, "EPERM"},
		{"clone a file", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x40049409}, allowed},
		{"clone a part of one", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x4020940d}, allowed},
		{"share equal blocks", Filter{}, unix.SYS_IOCTL, []uint64{3, 0xc0189436}, allowed},
		{"make a subvolume (Btrfs)", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x5000940e}, "EPERM"},
		{"make a snapshot (Btrfs)", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x50009417}, "EPERM"},
		{"remove a subvolume (Btrfs)", Filter{}, unix.SYS_IOCTL, []uint64{3, 1<<32 | 0x5000943f}, "EPERM"},
		{"make a subvolume (bcachefs)", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x4020bc10}, "EPERM"},
		{"close encrypted files", Filter{}, unix.SYS_IOCTL, []uint64{3, 0xc0406618}, "EPERM"},
		{"a file's number (ext4)", Filter{}, unix.SYS_IOCTL, []uint64{3, 0x40086604}, "EPERM"},
		{"move its memory's ends", Filter{}, unix.SYS_PRCTL, []uint64{unix.PR_SET_MM}, "EPERM"},
		{"a stack of return addresses", Filter{}, unix.SYS_PRCTL, []uint64{unix.PR_SET_SHADOW_STACK_STATUS, 1}, "EINVAL"},
		{"name a thread", Filter{}, unix.SYS_PRCTL, []uint64{unix.PR_SET_NAME}, allowed},
		{"an access control list", Filter{}, unix.SYS_SETXATTR, nil, "ENOTSUP"},

		{"none: inet", Filter{}, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, "EPERM"},
		{"none: unix", Filter{}, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, "EPERM"},
		{"none: connect", Filter{}, unix.SYS_CONNECT, nil, "EPERM"},
		{"none: a pair", Filter{}, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, allowed},
		{"none: a pair that can send elsewhere", Filter{}, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, "EPERM"},
		{"none: a pair of TIPC", Filter{}, unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM}, "EPERM"},
		{"local, own: inet", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, allowed},
		{"local, own: inet6", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}, allowed},
		{"local, own: unix", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, allowed},
		{"local, own: raw", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW}, "EPERM"},
		{"local, own: SOCK_PACKET", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_PACKET}, "EPERM"},
		{"local, own: routes", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, allowed},
		{"local, own: netfilter", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, "EPERM"},
		{"local: packet", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW}, "EPERM"},
		{"local: vsock", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, "EPERM"},
		{"local: alg", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, "EPERM"},
		{"local: unix", Filter{Network: NetworkLocal}, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allowed},
		{"Internet: unix", Filter{Network: NetworkInternet}, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, "EPERM"},
		{"Internet: inet", Filter{Network: NetworkInternet}, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM}, allowed},

		{"alone: another's scheduler", Filter{Alone: true}, unix.SYS_SCHED_SETSCHEDULER, []uint64{4711}, "EPERM"},
		{"alone: own scheduler", Filter{Alone: true}, unix.SYS_SCHED_SETSCHEDULER, []uint64{0}, allowed},
		{"alone: priority of a user", Filter{Alone: true}, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0}, "EPERM"},
		{"alone: another's priority", Filter{Alone: true}, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 4711}, "EPERM"},
		{"alone: own priority", Filter{Alone: true}, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0}, allowed},
		{"no scope: everybody", Filter{Alone: true, NoScope: true, Keep: []int64{4711}}, unix.SYS_KILL, []uint64{^uint64(0)}, "EPERM"},
		{"no scope: the server", Filter{Alone: true, NoScope: true, Keep: []int64{4711}}, unix.SYS_KILL, []uint64{4711}, "EPERM"},
		{"no scope: the server's group", Filter{Alone: true, NoScope: true, Keep: []int64{4711}}, unix.SYS_KILL, []uint64{1<<32 - 4711}, "EPERM"},
		{"no scope: own child", Filter{Alone: true, NoScope: true, Keep: []int64{4711}}, unix.SYS_KILL, []uint64{4712}, allowed},
		{"no scope: by descriptor", Filter{Alone: true, NoScope: true}, unix.SYS_PIDFD_SEND_SIGNAL, nil, "ENOSYS"},
	}
	for _, tt := range tests {
		if got := decide(t, tt.filter.Program(), auditArch, uint32(tt.nr), tt.args); got != tt.want {
			t.Errorf("%s: %+v decides %q, want %q", tt.name, tt.filter, got, tt.want)
		}
	}
	for _, f := range []Filter{{}, {Network: NetworkLocal}, {Network: NetworkInternet, Alone: true, NoScope: true, Keep: []int64{1, 2}}} {
		if got := decide(t, f.Program(), unix.AUDIT_ARCH_I386, unix.SYS_READ, nil); got != "killed" {
			t.Errorf("%+v decides %q about another architecture's call, want it killed", f, got)
		}
	}
}

// decide runs a filter.
func decide(t *testing.T, code []unix.SockFilter, arch, nr uint32, args []uint64) string {
	t.Helper()
	data := map[uint32]uint32{offNr: nr, offArch: arch}
	for i, a := range args {
		data[offArgs+8*uint32(i)] = uint32(a)
		data[offArgs+8*uint32(i)+4] = uint32(a >> 32)
	}
	var acc uint32
	for pc := 0; pc < len(code); {
		in := code[pc]
		pc++
		jump := func(cond bool) {
			if cond {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= in.K)
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump(acc > in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&in.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
		case unix.BPF_RET | unix.BPF_K:
			switch in.K {
			case retAllow:
				return "allowed"
			case retKill:
				return "killed"
			case retAsk:
				return "asked"
			case retDone:
				return "done"
			}
			return unix.ErrnoName(unix.Errno(in.K & unix.SECCOMP_RET_DATA))
		default:
			t.Fatalf("instruction %d has the unknown code %#x", pc-1, in.Code)
		}
	}
	t.Fatal("the filter runs off its end")
	return ""
}
