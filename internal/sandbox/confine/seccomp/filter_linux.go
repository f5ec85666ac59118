//go:build amd64 || arm64

package seccomp

import (
	"math"
	"runtime"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. Only the low half of an argument is compared; the
// kernel uses no more of the arguments that are compared here.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

const (
	retAllow  = unix.SECCOMP_RET_ALLOW
	retAsk    = unix.SECCOMP_RET_USER_NOTIF // the supervisor decides; see package confine
	retDone   = unix.SECCOMP_RET_ERRNO      // nothing happens, and the program is told that it worked
	retPerm   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retNoSpc  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSPC)
	retMFile  = unix.SECCOMP_RET_ERRNO | uint32(unix.EMFILE)
	retNoSys  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retNoMem  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOMEM)
	retInval  = unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)
	retNoSupp = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	retKill   = unix.SECCOMP_RET_KILL_PROCESS
)

// Network says which sockets a program may make.
type Network uint64

const (
	NetworkNone     Network = iota // none, except connected pairs
	NetworkInternet                // of the Internet, and netlink's routes
	NetworkLocal                   // the same, and unix sockets
)

// A Filter says what else to refuse, besides what every filter refuses.
type Filter struct {
	Network Network
	Alone   bool    // no PID namespace: other processes can be named, and must not be
	Counted bool    // with a PID namespace and no user namespace: the kernel's counts for the user include other programs
	NoScope bool    // with Alone: nothing else keeps signals from others
	Keep    []int64 // with NoScope: processes that must not get signals

	// NoListener says that the filter cannot ask the supervisor. Calls that need an
	// answer are then refused, or bounded one by one. The program must not be able to
	// open /dev/zero for writing.
	NoListener bool
	Piece      int64 // with NoListener: most bytes of a shared mapping without a file; 0: any number

	NoQueues bool // the kernel has no limit on POSIX message queues, so none can be made
}

// newNamespaces are the flags of clone(2) and unshare(2) that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | 0x80 // CLONE_NEWTIME

// A filterWriter writes a filter whose instructions only jump forward.
type filterWriter struct{ code []unix.SockFilter }

func (w *filterWriter) add(code uint16, jt, jf uint8, k uint32) {
	w.code = append(w.code, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (w *filterWriter) load(off uint32) { w.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, off) }
func (w *filterWriter) ret(v uint32)    { w.add(unix.BPF_RET|unix.BPF_K, 0, 0, v) }

func arg(n uint32) uint32 { return offArgs + 8*n }

// refuse makes a system call fail.
func (w *filterWriter) refuse(nr int, v uint32) {
	w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, uint32(nr))
	w.ret(v)
}

// when adds the instructions for one system call. Those that decide adds may load
// anything, and must return on every path.
func (w *filterWriter) when(nr int, decide func(*filterWriter)) {
	var inner filterWriter
	decide(&inner)
	w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, uint32(nr))
	w.add(unix.BPF_JMP|unix.BPF_JA, 0, 0, uint32(len(inner.code)))
	w.code = append(w.code, inner.code...)
}

// oneOf returns v when the loaded value is one of values.
func (w *filterWriter) oneOf(v uint32, values ...uint32) {
	for _, k := range values {
		w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, k)
		w.ret(v)
	}
}

// anyBit returns v when the loaded value has a bit of mask.
func (w *filterWriter) anyBit(v, mask uint32) {
	w.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, 1, mask)
	w.ret(v)
}

// Program returns the filter's instructions.
func (f Filter) Program() []unix.SockFilter {
	var w filterWriter
	w.load(offArch)
	w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, auditArch)
	w.ret(retKill)
	w.load(offNr)
	if runtime.GOARCH == "amd64" {
		const x32 = 0x40000000
		w.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, 1, x32)
		w.ret(retNoSys)
	}
	// System calls newer than the reviewed ones.
	w.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, 0, 1, lastJudged)
	w.ret(retNoSys)
	// A filter cannot see the flags of clone3; programs fall back to clone.
	w.refuse(unix.SYS_CLONE3, retNoSys)
	for _, nr := range refused() {
		w.refuse(nr, retPerm)
	}
	for _, nr := range missing() {
		w.refuse(nr, retNoSys)
	}
	for _, nr := range attributes() {
		w.refuse(nr, retNoSupp)
	}
	w.allocation()
	f.memory(&w)
	for _, nr := range []int{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		w.when(nr, func(w *filterWriter) {
			w.load(arg(0))
			w.anyBit(retPerm, newNamespaces&^extraFlag(nr))
			w.ret(retAllow)
		})
	}
	w.when(unix.SYS_IOCTL, func(w *filterWriter) {
		const (
			tiocLinux = 0x541c
			fioSetOwn = 0x8901 // as F_SETOWN
			siocSPGrp = 0x8902 // the same
			// These need only a file's name or an open descriptor, and no write permission:
			setFlags    = 0x40086602 // FS_IOC_SETFLAGS
			setXAttr    = 0x401c5820 // FS_IOC_FSSETXATTR, which sets the quota that a file counts toward
			setVerity   = 0x40806685 // FS_IOC_ENABLE_VERITY makes a file read-only for good
			setPolicy   = 0x800c6613 // FS_IOC_SET_ENCRYPTION_POLICY
			setVersion  = 0x40087602 // FS_IOC_SETVERSION
			setVersion4 = 0x40086604 // EXT4_IOC_SETVERSION
			addCryptKey = 0xc0506617 // FS_IOC_ADD_ENCRYPTION_KEY
			delCryptKey = 0xc0406618 // FS_IOC_REMOVE_ENCRYPTION_KEY closes the user's encrypted files

			// Other ways to allocate space; see allocation.
			reserve    = 0x40305828 // FS_IOC_RESVSP
			reserve64  = 0x4030582a // FS_IOC_RESVSP64
			zeroRange  = 0x40305839 // FS_IOC_ZERO_RANGE
			allocate   = 0x4030580a // XFS_IOC_ALLOCSP
			allocate64 = 0x40305824 // XFS_IOC_ALLOCSP64
			resize     = 0x4030580b // XFS_IOC_FREESP, which allocates as well as frees
			resize64   = 0x40305825 // XFS_IOC_FREESP64

			// File systems' own calls that make and remove subvolumes: they need only a folder
			// that is open for reading, and bypass Landlock. Other calls, which clone a file's
			// blocks, have numbers that look like Btrfs's.
			kind        = 0xff00
			btrfs       = 0x9400
			bcachefs    = 0xbc00
			clone       = 0x40049409 // FICLONE
			cloneRange  = 0x4020940d // FICLONERANGE
			dedupeRange = 0xc0189436 // FIDEDUPERANGE
		)
		w.load(arg(1))
		w.oneOf(retPerm, unix.TIOCSTI, tiocLinux, unix.TIOCSETD, fioSetOwn, siocSPGrp,
			setFlags, setXAttr, setVerity, setPolicy, setVersion, setVersion4, addCryptKey, delCryptKey)
		w.oneOf(retNoSupp, reserve, reserve64, zeroRange, allocate, allocate64, resize, resize64)
		w.oneOf(retAllow, clone, cloneRange, dedupeRange)
		w.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0, 0, kind)
		w.oneOf(retPerm, btrfs, bcachefs)
		w.ret(retAllow)
	})
	w.when(unix.SYS_PERSONALITY, func(w *filterWriter) {
		// PER_LINUX, ADDR_NO_RANDOMIZE, UNAME26, both, and the query.
		w.load(arg(0))
		w.oneOf(retAllow, 0, 0x0040000, 0x0020000, 0x0060000, 0xffffffff)
		w.ret(retPerm)
	})
	w.when(unix.SYS_PRCTL, func(w *filterWriter) {
		w.load(arg(0))
		// Only the kernel sets where a process's memory begins and ends. No limit counts
		// the memory of shadow stacks.
		w.oneOf(retPerm, unix.PR_SET_MM)
		w.oneOf(retInval, unix.PR_SET_SHADOW_STACK_STATUS)
		w.ret(retAllow)
	})
	w.shadowStack()
	w.setID()
	w.limits()
	f.fcntl(&w)
	f.sockets(&w)
	if f.Alone {
		f.others(&w)
	}
	if f.Alone || f.Counted {
		f.inotify(&w)
	}
	if f.NoQueues {
		w.refuse(unix.SYS_MQ_OPEN, retMFile) // as with a limit of 0
	}
	w.ret(retAllow)
	return w.code
}

// ask returns the verdict that leaves a call to the supervisor, or refusal if the
// supervisor cannot be asked.
func (f Filter) ask(refusal uint32) uint32 {
	if f.NoListener {
		return refusal
	}
	return retAsk
}

// allocation refuses to allocate space without writing. Where a folder is bounded
// only by looking at it regularly, that could fill the disk between two looks.
// Programs take the refusal for a limitation of the file system, and write instead.
// Calls that free space are allowed.
func (w *filterWriter) allocation() {
	w.when(unix.SYS_FALLOCATE, func(w *filterWriter) {
		w.load(arg(1))
		w.oneOf(retAllow, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_COLLAPSE_RANGE)
		w.ret(retNoSupp)
	})
}

// memory bounds memory that the kernel's limit on a process's data does not count. The
// supervisor counts shared memory. Like the filter, it sees sizes, but not which file
// a descriptor stands for; it may be /dev/zero.
//
// Where the supervisor cannot be asked, the filter bounds each mapping without a file.
// Mappings of files are not bounded: no program there can open /dev/zero for writing,
// without which a mapping of it takes no memory.
func (f Filter) memory(w *filterWriter) {
	w.when(unix.SYS_MMAP, func(w *filterWriter) {
		w.load(arg(3))
		// The kernel counts a mapping that grows down as a stack. Huge pages are reserved
		// for the programs that the administrator chose.
		w.anyBit(retNoMem, unix.MAP_GROWSDOWN|unix.MAP_HUGETLB)
		if !f.NoListener {
			w.anyBit(retAsk, unix.MAP_SHARED) // also a bit of MAP_SHARED_VALIDATE
			w.ret(retAllow)
			return
		}
		if f.Piece > 0 {
			for _, bit := range []uint32{unix.MAP_SHARED, unix.MAP_ANONYMOUS} {
				w.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 1, 0, bit)
				w.ret(retAllow)
			}
			w.atMost(1, f.Piece, retNoMem)
		}
		w.ret(retAllow)
	})
	if f.Alone {
		return // the rest is refused
	}
	w.when(unix.SYS_SHMGET, func(w *filterWriter) {
		const shmHugeTLB = 0o4000
		w.load(arg(2))
		w.anyBit(retNoMem, shmHugeTLB)
		w.ret(f.ask(retNoSpc))
	})
	w.refuse(unix.SYS_MSGGET, f.ask(retNoSpc))
	w.refuse(unix.SYS_SEMGET, f.ask(retNoSpc))
}

// atMost returns v when an argument of 64 bits is larger than most.
func (w *filterWriter) atMost(n uint32, most int64, v uint32) {
	low := uint32(min(most, math.MaxUint32))
	w.load(arg(n) + 4)
	w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, 0)
	w.ret(v)
	w.load(arg(n))
	w.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, 0, 1, low)
	w.ret(v)
}

// limits lets the program set only its own limits, not those of the user's other
// processes: a limit of one second of processor time would kill the server. The limit
// of core files stays at one byte (see plan.limits); a program that sets it is told
// that it succeeded.
func (w *filterWriter) limits() {
	w.when(unix.SYS_PRLIMIT64, func(w *filterWriter) {
		w.load(arg(0))
		w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, 0)
		w.ret(retPerm)
		w.load(arg(1))
		w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, unix.RLIMIT_CORE)
		w.ret(retAllow)
		// A pointer is nil only if both halves are 0.
		for _, half := range []uint32{0, 4} {
			w.load(arg(2) + half)
			w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, 0)
			w.ret(retDone)
		}
		w.ret(retAllow)
	})
	w.when(unix.SYS_SETRLIMIT, func(w *filterWriter) {
		w.load(arg(0))
		w.oneOf(retDone, unix.RLIMIT_CORE)
		w.ret(retAllow)
	})
}

// fcntl refuses commands that affect other programs. A lease on a file delays every
// program that opens it, and needs no write permission.
func (f Filter) fcntl(w *filterWriter) {
	w.when(unix.SYS_FCNTL, func(w *filterWriter) {
		const (
			setDeleg  = 1040     // F_SETDELEG, also a lease on a folder
			lastKnown = setDeleg // later commands were not reviewed
			usualPipe = 64 << 10 // bytes; all of a user's pipes share a quota
		)
		w.load(arg(1))
		w.oneOf(retPerm, unix.F_SETLEASE, unix.F_NOTIFY, setDeleg)
		if f.Alone && f.NoScope {
			// F_SETOWN sends signals to another process when there is something to read.
			w.oneOf(retPerm, unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG)
		}
		w.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, 0, 1, lastKnown)
		w.ret(retInval)
		w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, unix.F_SETPIPE_SZ)
		w.ret(retAllow)
		w.load(arg(2))
		w.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, 0, 1, usualPipe)
		w.ret(retPerm)
		w.ret(retAllow)
	})
}

// setID keeps the program from making set-user-ID files, which would give the user's
// rights to anybody who runs them. A filter cannot see the mode of openat2; programs
// fall back to openat.
func (w *filterWriter) setID() {
	const bits = unix.S_ISUID | unix.S_ISGID
	for _, c := range modeCalls() {
		w.when(c.nr, func(w *filterWriter) {
			if c.creates > 0 {
				w.load(arg(c.creates))
				w.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 1, 0, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY)
				w.ret(retAllow)
			}
			w.load(arg(c.mode))
			w.anyBit(retPerm, bits)
			w.ret(retAllow)
		})
	}
	w.refuse(unix.SYS_OPENAT2, retNoSys)
}

// A modeCall is a system call that takes a mode. If creates is not 0, it does so only
// if that argument has O_CREAT or the bits of O_TMPFILE.
type modeCall struct {
	nr            int
	mode, creates uint32 // arguments
}

func modeCalls() []modeCall {
	return append([]modeCall{
		{nr: unix.SYS_FCHMOD, mode: 1}, {nr: unix.SYS_FCHMODAT, mode: 2}, {nr: unix.SYS_FCHMODAT2, mode: 2},
		{nr: unix.SYS_MKDIRAT, mode: 2}, {nr: unix.SYS_MKNODAT, mode: 2},
		{nr: unix.SYS_OPENAT, mode: 3, creates: 2},
	}, modeCallsHere()...)
}

// extraFlag returns a bit that means a namespace to unshare, but part of the signal
// number to clone.
func extraFlag(nr int) uint32 {
	if nr == unix.SYS_CLONE {
		return 0x80
	}
	return 0
}

// onlySelf refuses a call about any process except the calling one.
func onlySelf(w *filterWriter) {
	w.load(arg(0))
	w.oneOf(retAllow, 0)
	w.ret(retPerm)
}

// sockets decides which sockets the program may make.
func (f Filter) sockets(w *filterWriter) {
	// A datagram socket of a connected pair can still send to any path.
	w.when(unix.SYS_SOCKETPAIR, func(w *filterWriter) {
		w.load(arg(0))
		w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, unix.AF_UNIX)
		w.ret(retPerm)
		w.socketType()
		w.oneOf(retAllow, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)
		w.ret(retPerm)
	})
	if f.Network == NetworkNone {
		for _, nr := range []int{unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4} {
			w.refuse(nr, retPerm)
		}
		return
	}
	w.when(unix.SYS_SOCKET, func(w *filterWriter) {
		w.load(arg(0))
		// Netlink only for routes, which getaddrinfo and others read.
		w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 4, unix.AF_NETLINK)
		w.load(arg(2))
		w.oneOf(retAllow, unix.NETLINK_ROUTE)
		w.ret(retPerm)
		internet := []uint32{unix.AF_INET, unix.AF_INET6}
		if f.Network == NetworkLocal {
			internet = append(internet, unix.AF_UNIX)
		}
		for _, family := range internet {
			w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 9, family)
			w.socketType()
			w.oneOf(retAllow, unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET)
			w.ret(retPerm)
		}
		w.ret(retPerm)
	})
}

// socketType loads argument 1 without the flags that may be combined with it.
func (w *filterWriter) socketType() {
	w.load(arg(1))
	w.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0, 0, 0xf)
}

// others keeps the program from other processes of the same user.
func (f Filter) others(w *filterWriter) {
	for _, nr := range []int{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
		unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES} {
		w.when(nr, onlySelf)
	}
	const ioProcess = 1 // IOPRIO_WHO_PROCESS
	for nr, process := range map[int]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: ioProcess} {
		w.when(nr, func(w *filterWriter) {
			w.load(arg(0))
			w.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, process)
			w.ret(retPerm)
			w.load(arg(1))
			w.oneOf(retAllow, 0)
			w.ret(retPerm)
		})
	}
	for _, nr := range []int{
		unix.SYS_PROCESS_MADVISE,
		// memory, messages and semaphores that all of a user's programs share
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	} {
		w.refuse(nr, retPerm)
	}
	w.refuse(unix.SYS_PROCESS_MRELEASE, retPerm)
	if !f.NoScope {
		return
	}
	// Without Landlock's scope for signals, at least these processes must not get one.
	keep := []uint32{^uint32(0)} // -1 is everybody
	for _, pid := range f.Keep {
		keep = append(keep, uint32(pid), uint32(-pid))
	}
	for _, nr := range []int{unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO} {
		w.when(nr, func(w *filterWriter) {
			w.load(arg(0))
			w.oneOf(retPerm, keep...)
			w.ret(retAllow)
		})
	}
	w.refuse(unix.SYS_PIDFD_SEND_SIGNAL, retNoSys)
}

// inotify makes the supervisor count the program's share of the user's instances and
// watches, since without a user namespace the program has no limits of its own.
func (f Filter) inotify(w *filterWriter) {
	for _, nr := range InotifyInits() {
		w.refuse(nr, f.ask(retMFile))
	}
	w.refuse(unix.SYS_INOTIFY_ADD_WATCH, f.ask(retNoSpc))
}

// refused lists system calls that no program here needs, and that affect other
// processes, the kernel's settings, or the other filters.
func refused() []int {
	return append([]int{
		// other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		// ways around a filter of system calls
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		// the kernel's insides
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_SYSLOG,
		// keys are not in a namespace
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		// mounts and roots
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT,
		// the machine
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
		unix.SYS_NFSSERVCTL, unix.SYS_LSM_SET_SELF_ATTR,
	}, refusedHere()...)
}

// missing lists the system calls that fail as if the kernel did not have them.
// Programs have fallbacks.
func missing() []int {
	return []int{
		// memory that no limit bounds
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_MAP_SHADOW_STACK,
		unix.SYS_IO_SETUP, // the requests are limited for the whole machine
		unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	}
}

// attributes lists the system calls that change extended attributes: access control
// lists, capabilities, and data of other programs. A filter cannot see the attribute's
// name. To programs, the file system seems to have no attributes.
func attributes() []int {
	return []int{
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		unix.SYS_FILE_SETATTR,
	}
}

// InotifyInits are the system calls that make an inotify instance.
func InotifyInits() []int { return append([]int{unix.SYS_INOTIFY_INIT1}, inotifyInitsHere()...) }

// lastJudged is the highest system call that was reviewed for refused.
const lastJudged = unix.SYS_FILE_SETATTR
