//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// selfOps examine what the program itself was given, or use it up.
func selfOps() map[string]op {
	return map[string]op{
		"fds":      func([]string) (string, error) { return descriptors(), nil },
		"rlimits":  func([]string) (string, error) { return rlimits() },
		"confined": func([]string) (string, error) { return confined() },
		"environ":  func([]string) (string, error) { return asJSON(os.Environ()) },
		"stdin": func([]string) (string, error) {
			n, err := unix.Read(0, make([]byte, 16))
			return fmt.Sprint(n), endOfFile(n, err)
		},
		"tty":      func([]string) (string, error) { _, err := unix.Open("/dev/tty", unix.O_RDWR, 0); return "", err },
		"ids":      func([]string) (string, error) { return fmt.Sprint(os.Getuid(), os.Getgid()), nil },
		"hostname": func([]string) (string, error) { return os.Hostname() },
		"session":  func([]string) (string, error) { return session() },
		"alloc":    alloc,
		"forks":    forks,
		"pids":     func([]string) (string, error) { return fmt.Sprint(os.Getpid(), " ", os.Getppid()), nil },
	}
}

func asJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func endOfFile(n int, err error) error {
	if n == 0 && err == nil {
		return answer("EOF")
	}
	return err
}

// descriptors lists open descriptors, except those that Go's runtime opened.
func descriptors() string {
	var open []string
	for fd := range 1024 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		link, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if fd > 2 && (strings.HasPrefix(link, "anon_inode:") || strings.HasPrefix(link, "/sys/fs/cgroup/")) {
			continue
		}
		open = append(open, fmt.Sprint(fd))
	}
	return strings.Join(open, " ")
}

func rlimits() (string, error) {
	got := map[string]uint64{}
	for name, which := range map[string]int{
		"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
		"fsize": unix.RLIMIT_FSIZE, "nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC,
	} {
		// Not os or syscall, which return what Go found at its start.
		var lim unix.Rlimit
		if err := unix.Prlimit(0, which, nil, &lim); err != nil {
			return "", err
		}
		got[name] = lim.Cur
	}
	return asJSON(got)
}

// confined describes what restricts this process and all of its threads.
func confined() (string, error) {
	var missing []string
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
		missing = append(missing, "no-new-privs")
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil || n != 2 {
		missing = append(missing, "seccomp")
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&hdr, &caps[0]); err != nil {
		return "", err
	}
	if caps != [2]unix.CapUserData{} {
		missing = append(missing, fmt.Sprintf("capabilities %x", caps))
	}
	for c := range uintptr(64) {
		if n, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0); err == nil && n == 1 {
			missing = append(missing, fmt.Sprintf("ambient capability %d", c))
		}
	}
	if err := open(unix.AF_VSOCK, unix.SOCK_STREAM, 0); !errors.Is(err, unix.EPERM) {
		missing = append(missing, fmt.Sprintf("socket: %v", err))
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return strings.Join(missing, ", "), answer("not confined")
	}
	return "", nil
}

func session() (string, error) {
	sid, err := unix.Getsid(0)
	return "", sameOr(sid, os.Getpid(), err)
}

func sameOr(got, want int, err error) error {
	if err == nil && got != want {
		return answer(fmt.Sprintf("%d, not %d", got, want))
	}
	return err
}

// alloc requests MiB of memory in pieces, and touches none of it.
func alloc(args []string) (string, error) {
	const piece = 16
	for n := 0; n < number(args, 0); n += piece {
		_, err := unix.MmapPtr(-1, 0, nil, piece<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return fmt.Sprint(n), err
		}
	}
	return "", nil
}

// forks COUNT MARKER [stay] starts COUNT processes that keep running; with stay, this one
// does too, if it could start all of them.
func forks(args []string) (string, error) {
	for n := range number(args, 0) {
		if _, e := forkDo(asChild, nil); e != 0 {
			return fmt.Sprint(n), e
		}
	}
	if len(args) > 2 {
		stay()
	}
	return "", nil
}

// plainSignal restores the default action of a signal, which Go changed.
func plainSignal(sig unix.Signal) {
	var action [32]byte // SIG_DFL, no flags, no mask
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}
