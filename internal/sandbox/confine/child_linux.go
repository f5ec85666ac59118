//go:build amd64 || arm64

package confine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"
)

// A family is what the helper forks: the program, or the init of a PID namespace,
// which then forks the program.
type family struct {
	ns      bool // there is an init
	flags   uintptr
	into    *cloneArgs // makes the child in a control group; nil: clone(2) makes it
	setup   plan       // of the init
	program plan       // of the program

	// Buffers for the children, which cannot allocate memory.
	mask   [8]byte // all signals
	before [8]byte // the helper's own blocked signals
	child  [8]byte // SIGCHLD
	record record
	poll   [2]unix.PollFd
	info   [128]byte // struct signalfd_siginfo
	one    [1]byte
	status int32
	usage  syscall.Rusage
}

// A record is what a child tells the helper.
type record struct {
	kind  int32
	index int32 // of the step that failed
	errno int32
	wait  int32 // status of the program
	usage syscall.Rusage
}

const (
	saysSetup   = 1 + iota // the init could not set up its namespaces
	saysProgram            // the program could not be started
	saysEnd                // the program has ended
)

// cloneArgs is struct clone_args.
type cloneArgs struct {
	flags, pidfd, childTid, parentTid, exitSignal, stack, stackSize, tls, setTid, setTidSize, cgroup uint64
}

// join makes the child and its descendants members of a control group: at the fork if
// the kernel supports that, otherwise by a step of the plan that the child runs
// first.
func (f *family) join(first *plan, g *groups.Group) {
	if g == nil {
		return
	}
	fd, files := g.NewMember()
	if fd < 0 {
		for _, file := range files {
			first.write(file, "0")
		}
		return
	}
	f.into = &cloneArgs{flags: uint64(f.flags) | unix.CLONE_INTO_CGROUP, exitSignal: uint64(unix.SIGCHLD), cgroup: uint64(fd)}
}

const noStep = -1 // the index of a record that concerns no step of a plan

const recordSize = unsafe.Sizeof(record{})

// fork makes the child: the program, or the init that starts it. The init sets
// up the namespaces, starts the program, and then reaps every orphan of the
// namespace. When it ends, the kernel kills the others.
//
// Only the calling thread exists in a child. All signals are blocked until then, so
// that no handler of the Go runtime ever runs there. All of a child's code is in this
// one function, whose stack was checked before the fork, and in leaf functions
// without a stack check: a child that had to grow its stack, or was preempted, would
// never continue.
//
//go:norace
//go:noinline
func (f *family) fork() (pid int, err error) {
	for i := range f.mask {
		f.mask[i] = 0xff
	}
	f.child[2] = 1 << (uint(unix.SIGCHLD) - 1 - 16)
	_, _, e := syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&f.mask)), uintptr(unsafe.Pointer(&f.before)), 8, 0, 0)
	if e != 0 {
		return 0, e
	}
	var r uintptr
	if f.into != nil {
		r, _, e = syscall.RawSyscall6(unix.SYS_CLONE3, uintptr(unsafe.Pointer(f.into)), unsafe.Sizeof(*f.into), 0, 0, 0, 0)
	} else {
		r, _, e = syscall.RawSyscall6(unix.SYS_CLONE, f.flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
	if e != 0 || r != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&f.before)), 0, 8, 0, 0)
		if e != 0 {
			return 0, e
		}
		return int(r), nil
	}

	var failed int
	var errno, fd, program, n uintptr
	if !f.ns {
		goto program
	}
	if failed, errno = f.setup.run(); failed >= 0 {
		f.say(saysSetup, failed, errno)
		exit(1)
	}
	fd, _, e = syscall.RawSyscall6(unix.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&f.child)), 8, unix.SFD_CLOEXEC, 0, 0)
	if e != 0 {
		f.say(saysSetup, noStep, uintptr(e))
		exit(1)
	}
	program, _, e = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		f.say(saysSetup, noStep, uintptr(e))
		exit(1)
	}
	if program == 0 {
		goto program
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, fdStdin, fdQuestions, 0)
	f.poll[0].Fd, f.poll[0].Events = fdOrders, unix.POLLIN
	f.poll[1].Fd, f.poll[1].Events = int32(fd), unix.POLLIN
	for {
		// The signals stay blocked, so nothing interrupts.
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&f.poll)), 2, 0, 0, 0, 0)
		if f.poll[0].Revents != 0 {
			n, _, _ = syscall.RawSyscall(unix.SYS_READ, fdOrders, uintptr(unsafe.Pointer(&f.one)), 1)
			if n != 1 {
				exit(0) // the helper is gone, or wants us to end
			}
			_, _, _ = syscall.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGTERM), 0)
		}
		if f.poll[1].Revents == 0 {
			continue
		}
		_, _, _ = syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&f.info)), 128)
		for {
			n, _, e = syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&f.status)),
				unix.WNOHANG|unix.WALL, uintptr(unsafe.Pointer(&f.usage)), 0, 0)
			if e != 0 || n == 0 {
				break
			}
			if n == program {
				f.record.wait = f.status
				f.record.usage = f.usage
				f.say(saysEnd, noStep, 0)
				exit(0)
			}
		}
	}

program:
	failed, errno = f.program.run()
	f.say(saysProgram, failed, errno)
	exit(1)
	return 0, nil
}

// say writes a record to the helper.
//
//go:nosplit
//go:norace
func (f *family) say(kind int32, index int, errno uintptr) {
	f.record.kind, f.record.index, f.record.errno = kind, int32(index), int32(errno)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, fdReport, uintptr(unsafe.Pointer(&f.record)), recordSize)
}

//go:nosplit
//go:norace
func exit(code uintptr) {
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
