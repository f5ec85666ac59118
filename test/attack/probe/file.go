//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileOps do something to a path. The test creates the paths.
func fileOps() map[string]op {
	const noFollow = unix.AT_SYMLINK_NOFOLLOW
	one := func(do func(path string) error) op {
		return func(args []string) (string, error) { return "", do(args[0]) }
	}
	two := func(do func(from, to string) error) op {
		return func(args []string) (string, error) { return "", do(args[0], args[1]) }
	}
	return map[string]op{
		"read":      read,
		"list":      list,
		"stat":      one(func(p string) error { return unix.Lstat(p, new(unix.Stat_t)) }),
		"access":    one(func(p string) error { return unix.Access(p, unix.F_OK) }),
		"chdir":     one(unix.Chdir),
		"statfs":    one(func(p string) error { return unix.Statfs(p, new(unix.Statfs_t)) }),
		"listxattr": one(func(p string) error { _, err := unix.Listxattr(p, nil); return err }),
		"watch":     one(watch),
		"reopen":    one(reopen),
		"handle":    two(byHandle),
		"open-tree": one(openTree),
		"chmod":     one(func(p string) error { return unix.Chmod(p, 0o644) }),
		"create-setuid": one(func(p string) error {
			_, err := unix.Open(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, unix.S_ISUID|0o755)
			return err
		}),
		"mknod-setuid":  one(func(p string) error { return unix.Mknod(p, unix.S_IFREG|unix.S_ISUID|0o755, 0) }),
		"mkdir-setgid":  one(func(p string) error { return unix.Mkdir(p, unix.S_ISGID|0o755) }),
		"tmpfile-setid": one(func(p string) error { return tmpfile(p, unix.S_ISGID|0o755) }),
		"openat2-setid": one(func(p string) error {
			_, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT, Mode: unix.S_ISUID | 0o755})
			return err
		}),
		"set-acl":    one(func(p string) error { return unix.Setxattr(p, "system.posix_acl_access", accessList(), 0) }),
		"set-caps":   one(func(p string) error { return unix.Setxattr(p, "security.capability", fileCapability(), 0) }),
		"fset-acl":   one(setThrough),
		"lease":      one(func(p string) error { return control(p, unix.O_RDONLY, unix.F_SETLEASE, unix.F_RDLCK) }),
		"dnotify":    one(func(p string) error { return control(p, unix.O_RDONLY|unix.O_DIRECTORY, unix.F_NOTIFY, 1) }),
		"fchmod":     one(fchmod),
		"chown":      one(func(p string) error { return unix.Chown(p, os.Getuid(), os.Getgid()) }),
		"utimes":     one(func(p string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, p, make([]unix.Timespec, 2), noFollow) }),
		"setxattr":   one(func(p string) error { return unix.Setxattr(p, "user.probe", []byte("x"), 0) }),
		"write":      one(func(p string) error { return put(p, unix.O_WRONLY) }),
		"open-write": one(openWrite),
		"truncate":   one(func(p string) error { return unix.Truncate(p, 1) }),
		"create":     one(func(p string) error { return put(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }),
		"mkdir":      one(func(p string) error { return unix.Mkdir(p, 0o700) }),
		"unlink":     one(unix.Unlink),
		"rmdir":      one(unix.Rmdir),
		"mkfifo":     one(func(p string) error { return unix.Mkfifo(p, 0o600) }),
		"mknod-char": one(func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) }),
		"mknod-blk":  one(func(p string) error { return unix.Mknod(p, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))) }),
		"rename":     two(unix.Rename),
		"exchange": two(func(a, b string) error {
			return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
		}),
		"link":      two(unix.Link),
		"symlink":   two(unix.Symlink),
		"read-link": two(readLink),
		"exec":      one(execute),
		"exec-mem":  one(executeMemory),
		"allocate":  allocate,
		"reserve":   reserve,
		"lock":      one(lock),
	}
}

func read(args []string) (string, error) {
	fd, err := unix.Open(args[0], unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "open", err
	}
	p := make([]byte, 64)
	n, err := unix.Read(fd, p)
	if errors.Is(err, unix.EAGAIN) { // nothing to read yet
		n, err = 0, nil
	}
	return strconv.QuoteToASCII(string(p[:max(n, 0)])), err
}

func list(args []string) (string, error) {
	fd, err := unix.Open(args[0], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", err
	}
	n, err := unix.ReadDirent(fd, make([]byte, 4096))
	return fmt.Sprint(n), err
}

func put(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("changed"))
	return err
}

// openWrite opens a path for writing, and writes nothing.
func openWrite(path string) error {
	_, err := unix.Open(path, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	return err
}

// watch asks to be notified of access to the path.
func watch(path string) error {
	fd, err := unix.InotifyInit1(0)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_ALL_EVENTS)
	return err
}

// reopen opens a path without rights, then opens that descriptor to read the contents.
func reopen(path string) error {
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	_, err = read([]string{fmt.Sprintf("/proc/self/fd/%d", fd)})
	return err
}

// fchmod changes the mode through a descriptor that is open for reading.
func fchmod(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Fchmod(fd, 0o755)
}

// tmpfile creates a file without a name, then gives it one.
func tmpfile(folder string, mode uint32) error {
	fd, err := unix.Open(folder, unix.O_TMPFILE|unix.O_RDWR, mode)
	if err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, folder+"/named", unix.AT_SYMLINK_FOLLOW)
}

// accessList gives another user rights to a file (acl(5), in Linux's encoding).
func accessList() []byte {
	list := []byte{2, 0, 0, 0}
	for _, e := range [][3]uint32{{1, 6, ^uint32(0)}, {2, 6, 4711}, {4, 4, ^uint32(0)}, {16, 6, ^uint32(0)}, {32, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	return list
}

// fileCapability grants CAP_NET_RAW to every user who runs the file (struct vfs_cap_data).
func fileCapability() []byte {
	var caps []byte
	for _, v := range []uint32{0x02000001, 1 << unix.CAP_NET_RAW, 0, 0, 0} {
		caps = binary.LittleEndian.AppendUint32(caps, v)
	}
	return caps
}

func setThrough(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Fsetxattr(fd, "system.posix_acl_access", accessList(), 0)
}

// control opens a file and calls fcntl.
func control(path string, flags, cmd, arg int) error {
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(fd), cmd, arg)
	return err
}

// allocate calls fallocate on the first MiB of a file with a given mode.
func allocate(args []string) (string, error) {
	fd, err := unix.Open(args[0], unix.O_RDWR, 0)
	if err != nil {
		return "open", err
	}
	return "", unix.Fallocate(fd, uint32(number(args, 1)), 0, 1<<20)
}

// reserve does the same as fallocate with an ioctl (struct space_resv).
func reserve(args []string) (string, error) {
	fd, err := unix.Open(args[0], unix.O_RDWR, 0)
	if err != nil {
		return "open", err
	}
	space := struct {
		kind, whence int16
		start, size  int64
		system, pid  uint32
		_            [4]int32
	}{size: 1 << 20}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(number(args, 1)), uintptr(unsafe.Pointer(&space)))
	return "", errno(e)
}

// byHandle opens a file by its handle, without walking its path. folder identifies the file
// system.
func byHandle(path, folder string) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	_, err = unix.OpenByHandleAt(fd, handle, unix.O_RDONLY)
	return err
}

func openTree(path string) error {
	_, err := unix.OpenTree(unix.AT_FDCWD, path, 0)
	return err
}

// readLink creates a symbolic link at the second path, and reads through it.
func readLink(target, at string) error {
	if err := unix.Symlink(target, at); err != nil {
		return err
	}
	_, err := read([]string{at})
	return err
}

func lock(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
}

// execute runs a copy of this program at the path.
func execute(path string) error {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, self, 0o700); err != nil {
		return err
	}
	return start(path)
}

// executeMemory runs a copy of this program that exists only in memory.
func executeMemory(string) error {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("probe", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, self); err != nil {
		return err
	}
	argv := [...]*byte{cstring("probe"), cstring("exit"), cstring("0"), nil}
	empty, envp := cstring(""), [...]*byte{nil}
	err = inChild(execveat, uintptr(fd), uintptr(unsafe.Pointer(empty)), uintptr(unsafe.Pointer(&argv)), uintptr(unsafe.Pointer(&envp)))
	runtime.KeepAlive([]any{empty, &argv, &envp})
	return err
}

// execveat executes the program of a descriptor.
//
//go:nosplit
func execveat(a *[6]uintptr) unix.Errno {
	_, _, e := unix.RawSyscall6(unix.SYS_EXECVEAT, a[0], a[1], a[2], a[3], unix.AT_EMPTY_PATH, 0)
	return e
}

func start(path string) error {
	p, err := os.StartProcess(path, []string{path, "exit", "0"}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err != nil {
		return err
	}
	if !state.Success() {
		return answer(state.String())
	}
	return nil
}

func cstring(s string) *byte {
	p, err := unix.BytePtrFromString(s)
	if err != nil {
		fail(err.Error())
	}
	return p
}
