//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileOps do one thing to a path. Those that need it were made for the test.
func fileOps() map[string]op {
	const noFollow = unix.AT_SYMLINK_NOFOLLOW
	one := func(do func(path string) error) op {
		return func(args []string) (string, error) { return "", do(args[0]) }
	}
	two := func(do func(from, to string) error) op {
		return func(args []string) (string, error) { return "", do(args[0], args[1]) }
	}
	return map[string]op{
		"read":         read,
		"list":         list,
		"stat":         one(func(p string) error { return unix.Lstat(p, new(unix.Stat_t)) }),
		"access":       one(func(p string) error { return unix.Access(p, unix.F_OK) }),
		"chdir":        one(unix.Chdir),
		"statfs":       one(func(p string) error { return unix.Statfs(p, new(unix.Statfs_t)) }),
		"listxattr":    one(func(p string) error { _, err := unix.Listxattr(p, nil); return err }),
		"watch":        one(watch),
		"reopen":       one(reopen),
		"handle":       two(byHandle),
		"open-tree":    one(openTree),
		"chmod":        one(func(p string) error { return unix.Chmod(p, 0o644) }),
		"chmod-setuid": one(func(p string) error { return unix.Chmod(p, unix.S_ISUID|0o755) }),
		"create-setuid": one(func(p string) error {
			_, err := unix.Open(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, unix.S_ISUID|0o755)
			return err
		}),
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
	if errors.Is(err, unix.EAGAIN) { // there is nothing to read yet
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

// openWrite asks for the right only: nothing is written.
func openWrite(path string) error {
	_, err := unix.Open(path, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	return err
}

// watch learns when somebody touches the path.
func watch(path string) error {
	fd, err := unix.InotifyInit1(0)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_ALL_EVENTS)
	return err
}

// reopen asks for a path without rights, and for its contents in a second step.
func reopen(path string) error {
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	_, err = read([]string{fmt.Sprintf("/proc/self/fd/%d", fd)})
	return err
}

// fchmod changes the mode through a descriptor that was opened to read.
func fchmod(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Fchmod(fd, 0o755)
}

// byHandle opens a file by its number, without walking the path to it. Another
// folder stands for the file system.
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

// readLink makes a symbolic link at the second path, and reads through it.
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

// executeMemory runs a copy of this program that is in no folder.
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

// execveat becomes the program of a descriptor.
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
