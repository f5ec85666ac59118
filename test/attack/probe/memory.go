//go:build linux

package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memoryOps request memory that a limit on a process's data segment does not count. They do
// not touch it.
func memoryOps() map[string]op {
	return map[string]op{
		"share-anon":  func(args []string) (string, error) { return share(number(args, 0), -1, shareSize, false) },
		"share-part":  func(args []string) (string, error) { return share(number(args, 0), -1, shareSize, true) },
		"share-small": func(args []string) (string, error) { return share(number(args, 0), -1, 4, false) },
		"read-zero":   plain(readZero),
		"share-zero": func(args []string) (string, error) {
			fd, err := unix.Open("/dev/zero", unix.O_RDWR, 0)
			if err != nil {
				return "open", err
			}
			return share(number(args, 0), fd, shareSize, false)
		},
		"share-each": func(args []string) (string, error) {
			return "", inChild(shareEach, uintptr(number(args, 0)/shareSize))
		},
		"share-again": func(args []string) (string, error) { return shareAgain(number(args, 0)) },
		"memfd":       plain(func() error { _, err := unix.MemfdCreate("probe", 0); return err }),
		"grows-down":  plain(func() error { return anonymous(4<<30, unix.MAP_PRIVATE|unix.MAP_GROWSDOWN) }),
		"huge-pages":  plain(func() error { return anonymous(2<<20, unix.MAP_PRIVATE|unix.MAP_HUGETLB) }),
		"stack": plain(func() error {
			return unix.Prlimit(0, unix.RLIMIT_STACK, &unix.Rlimit{Cur: 1 << 30, Max: unix.RLIM_INFINITY}, nil)
		}),
		"shm-new":       func(args []string) (string, error) { return segments(number(args, 0)) },
		"queues":        func(args []string) (string, error) { return queues(number(args, 0)) },
		"pipe-size":     plain(pipeSize),
		"inotify-many":  func(args []string) (string, error) { return watchers(number(args, 0)) },
		"core-limit":    plain(coreLimit),
		"shadow-stack":  func([]string) (string, error) { return "", apart(unix.SYS_MAP_SHADOW_STACK, 0, 4096, 1) },
		"memfd-secret":  func([]string) (string, error) { return "", apart(unix.SYS_MEMFD_SECRET, 0, 0, 0) },
		"shared-a-file": with(shareFile),
	}
}

// shareSize is how many MiB are requested at a time.
const shareSize = 64

func anonymous(size uintptr, flags int) error {
	_, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	return err
}

// share requests MiB of shared memory in pieces of size MiB. With part, it unmaps all but one
// page of each piece, although the kernel keeps the whole piece.
func share(mib, fd, size int, part bool) (string, error) {
	flags := unix.MAP_SHARED | unix.MAP_NORESERVE
	if fd < 0 {
		flags |= unix.MAP_ANONYMOUS
	}
	for n := 0; n < mib; n += size {
		p, err := unix.MmapPtr(fd, 0, nil, uintptr(size)<<20, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			return fmt.Sprint(n), err
		}
		if part {
			if err := unix.MunmapPtr(unsafe.Add(p, 4096), uintptr(size)<<20-4096); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// readZero reads from /dev/zero, which any program may do.
func readZero() error {
	fd, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// A shared mapping of a read-only descriptor contains zeros that take no memory.
	if _, err := unix.Mmap(fd, 0, 64<<20, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return err
	}
	b := []byte{1}
	if n, err := unix.Read(fd, b); n != 1 || b[0] != 0 {
		return err
	}
	return nil
}

// shareEach requests the same total in many processes, each of which holds one piece and
// waits for the next.
//
//go:nosplit
func shareEach(a *[6]uintptr) unix.Errno {
	for n := a[0]; n > 0; n-- {
		p, _, e := unix.RawSyscall6(unix.SYS_MMAP, 0, shareSize<<20, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, ^uintptr(0), 0)
		if e != 0 {
			return e
		}
		pid, e := fork()
		if e != 0 {
			return e
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_MUNMAP, p, shareSize<<20, 0)
			continue
		}
		var status uint32
		unix.RawSyscall6(unix.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
		return unix.Errno(status >> 8 & 0xff)
	}
	return 0
}

// shareAgain requests MiB of shared memory in total, but returns each piece before the next,
// so that it never holds much.
func shareAgain(mib int) (string, error) {
	for n := 0; n < mib; n += shareSize {
		p, err := unix.MmapPtr(-1, 0, nil, shareSize<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
		if err != nil {
			return fmt.Sprint(n), err
		}
		if err := unix.MunmapPtr(p, shareSize<<20); err != nil {
			return "", err
		}
	}
	return "", nil
}

// shareFile maps a file, and reads it.
func shareFile(args []string) error {
	fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	b, err := unix.Mmap(fd, 0, 4, unix.PROT_READ, unix.MAP_SHARED)
	if err == nil && b[0] == 0 {
		return answer("empty")
	}
	return err
}

// segments creates System V shared memory of this many MiB, and removes it.
func segments(mib int) (string, error) {
	for n := 0; n < mib; n += shareSize {
		id, err := unix.SysvShmGet(0, shareSize<<20, unix.IPC_CREAT|0o600)
		if err != nil {
			return fmt.Sprint(n), err
		}
		defer func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }()
	}
	return "", nil
}

// queues creates message queues, and removes them.
func queues(count int) (string, error) {
	for n := range count {
		id, _, e := unix.Syscall(unix.SYS_MSGGET, 0, unix.IPC_CREAT|0o600, 0)
		if e != 0 {
			return fmt.Sprint(n), e
		}
		defer func() { _, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) }()
	}
	return "", nil
}

func pipeSize() error {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, 1<<20)
	return err
}

// watchers creates inotify instances.
func watchers(count int) (string, error) {
	for n := range count {
		if _, err := unix.InotifyInit1(0); err != nil {
			return fmt.Sprint(n), err
		}
	}
	return "", nil
}

// coreLimit raises the limit that lets the system collect core files.
func coreLimit() error {
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil {
		return err
	}
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &now); err != nil {
		return err
	}
	if now.Cur == 1 && now.Max == 1 {
		return answer("stays off")
	}
	return nil
}
