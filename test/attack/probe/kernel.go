//go:build linux

package main

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nowhere is a descriptor that is not open. A call that is allowed fails with EBADF or
// another errno, which shows that the kernel examined it.
const nowhere = ^uintptr(0)

// kernelOps are system calls that ordinary programs do not need, and that were ways out of
// other sandboxes. Those that would change the machine get arguments that the kernel
// rejects.
func kernelOps() map[string]op {
	sys := func(trap, a, b, c uintptr) op {
		return func([]string) (string, error) { return "", apart(trap, a, b, c) }
	}
	null := uintptr(0)
	return map[string]op{
		"unshare-user":   sys(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0),
		"unshare-mount":  sys(unix.SYS_UNSHARE, unix.CLONE_NEWNS, 0, 0),
		"clone-user":     plain(cloneUser),
		"clone3-user":    plain(clone3User),
		"setns":          sys(unix.SYS_SETNS, nowhere, 0, 0),
		"umount":         func(args []string) (string, error) { return "", unix.Unmount(args[0], 0) },
		"pivot-root":     func(args []string) (string, error) { return "", unix.PivotRoot(args[0], args[0]) },
		"chroot":         plain(chroot),
		"fsopen":         plain(fsopen),
		"move-mount":     plain(moveMount),
		"mount-setattr":  plain(mountSetattr),
		"ptrace-me":      sys(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0),
		"bpf":            sys(unix.SYS_BPF, 0xffff, null, 0),
		"perf":           sys(unix.SYS_PERF_EVENT_OPEN, null, 0, 0),
		"userfaultfd":    sys(unix.SYS_USERFAULTFD, 1, 0, 0),
		"add-key":        plain(addKey),
		"request-key":    plain(requestKey),
		"kexec":          sys(unix.SYS_KEXEC_LOAD, 0, 0xffff, null),
		"reboot":         sys(unix.SYS_REBOOT, 0, 0, 0),
		"init-module":    sys(unix.SYS_INIT_MODULE, null, 0, null),
		"finit-module":   sys(unix.SYS_FINIT_MODULE, nowhere, null, 0),
		"delete-module":  sys(unix.SYS_DELETE_MODULE, null, 0, 0),
		"swapon":         sys(unix.SYS_SWAPON, null, 0, 0),
		"swapoff":        sys(unix.SYS_SWAPOFF, null, 0, 0),
		"acct":           plain(acct),
		"clock-set":      sys(unix.SYS_CLOCK_SETTIME, 9999, null, 0),
		"set-hostname":   sys(unix.SYS_SETHOSTNAME, null, nowhere, 0),
		"quotactl":       sys(unix.SYS_QUOTACTL, nowhere, null, 0),
		"syslog":         sys(unix.SYS_SYSLOG, 3, null, 0),
		"fanotify":       sys(unix.SYS_FANOTIFY_INIT, 0, 0, 0),
		"pidfd-getfd":    sys(unix.SYS_PIDFD_GETFD, nowhere, 0, 0),
		"open-by-handle": sys(unix.SYS_OPEN_BY_HANDLE_AT, nowhere, null, 0),
		"io-setup":       plain(ioSetup),
		"statmount":      sys(unix.SYS_STATMOUNT, null, 0, 0),
		"listmount":      sys(unix.SYS_LISTMOUNT, null, 0, 0),
		"lsm-set":        sys(unix.SYS_LSM_SET_SELF_ATTR, 0, null, 0),
		"x32":            plain(x32),
		"i386":           plain(i386),
		"tiocsti":        func([]string) (string, error) { return "", terminal(unix.TIOCSTI) },
		"tioclinux":      func([]string) (string, error) { return "", terminal(0x541C) },
		"setuid":         setuid,
		"become":         plain(become),
	}
}

// cloneUser creates a user namespace with clone(2).
func cloneUser() error {
	return inChild(thenQuit, unix.SYS_CLONE, uintptr(unix.SIGCHLD)|unix.CLONE_NEWUSER)
}

// clone3User does so with the call whose flags a filter cannot read.
func clone3User() error {
	args := [8]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
	err := inChild(thenQuit, unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	runtime.KeepAlive(&args)
	return err
}

// thenQuit makes a process that ends at once.
//
//go:nosplit
func thenQuit(a *[6]uintptr) unix.Errno {
	pid, _, e := unix.RawSyscall6(a[0], a[1], a[2], 0, 0, 0, 0)
	if e == 0 && pid == 0 {
		quit(0)
	}
	return e
}

func fsopen() error {
	_, err := unix.Fsopen("tmpfs", 0)
	return err
}

func moveMount() error { return unix.MoveMount(-1, "", -1, "", unix.MOVE_MOUNT_F_EMPTY_PATH) }

func mountSetattr() error {
	return unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

func addKey() error {
	_, err := unix.AddKey("user", "probe", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return err
}

// requestKey looks for a key that does not exist.
func requestKey() error {
	_, err := unix.RequestKey("user", "packs-mcp-probe", "", 0)
	return err
}

func chroot() error {
	root := cstring("/")
	err := apart(unix.SYS_CHROOT, uintptr(unsafe.Pointer(root)), 0, 0)
	runtime.KeepAlive(root)
	return err
}

// acct names a missing file, so that accounting stays off.
func acct() error { return unix.Acct("/no-such-folder/probe") }

func terminal(request uintptr) error {
	c := byte('x')
	_, _, e := unix.Syscall(unix.SYS_IOCTL, 0, request, uintptr(unsafe.Pointer(&c)))
	return errno(e)
}

// ioSetup uses the older interface for asynchronous I/O.
func ioSetup() error {
	var ctx uintptr
	_, _, e := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&ctx)), 0)
	return errno(e)
}

// setuid starts another user's program with the setuid bit, and reports whether it got that
// user's rights.
func setuid(args []string) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	p, err := os.StartProcess(args[0], []string{args[0], "same-user"}, &os.ProcAttr{Files: []*os.File{nil, w, nil}})
	if err != nil {
		return "", err
	}
	_ = w.Close()
	out := make([]byte, 16)
	n, _ := r.Read(out)
	if _, err := p.Wait(); err != nil {
		return "", err
	}
	if string(out[:n]) == "same" {
		return "", answer("no rights gained")
	}
	return string(out[:n]), nil
}

// become switches to another user, if that is allowed, in a child that then ends.
func become() error {
	const other = 65533
	err := apart(unix.SYS_SETRESUID, other, other, other)
	if errors.Is(err, unix.EINVAL) { // the namespace has no such user
		return unix.EPERM
	}
	return err
}
