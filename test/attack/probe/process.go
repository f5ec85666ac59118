//go:build linux

package main

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// secretInMemory has the same address in every process of this program.
const secretInMemory = "canary in memory"

// processOps act on another process of the same user, given its pid.
func processOps() map[string]op {
	pid := func(do func(pid int) error) op {
		return func(args []string) (string, error) { return "", do(number(args, 0)) }
	}
	return map[string]op{
		"kill":        pid(func(p int) error { return unix.Kill(p, unix.SIGKILL) }),
		"kill-thread": pid(func(p int) error { return unix.Tgkill(p, p, unix.SIGKILL) }),
		"kill-queue":  pid(queueKill),
		"kill-pidfd":  pid(pidfdKill),
		"kill-sigio":  pid(sigioKill),
		"kill-group":  pid(func(p int) error { return unix.Kill(-p, unix.SIGKILL) }),
		"kill-all":    pid(killAll),
		"kill-parent": plain(func() error { return unix.Kill(os.Getppid(), unix.SIGKILL) }),
		"prlimit":     pid(prlimit),
		"priority":    pid(func(p int) error { return unix.Setpriority(unix.PRIO_PROCESS, p, 19) }),
		"affinity":    pid(affinity),
		"scheduler":   pid(scheduler),
		"ioprio":      pid(ioprio),
		"vm-read":     pid(vmRead),
		"pidfd-steal": pid(steal),
		"kcmp":        pid(kcmp),
		"shm-attach":  with(shmAttach),
		"mq-open":     with(mqOpen),
		"keyring":     plain(keyring),
	}
}

// siginfo returns a siginfo_t with SI_QUEUE.
func siginfo(sig unix.Signal) *[128]byte {
	info := new([128]byte)
	*(*int32)(unsafe.Pointer(&info[0])) = int32(sig)
	*(*int32)(unsafe.Pointer(&info[8])) = -1
	return info
}

func queueKill(pid int) error {
	_, _, e := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGKILL), uintptr(unsafe.Pointer(siginfo(unix.SIGKILL))))
	return errno(e)
}

func pidfdKill(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// sigioKill makes the kernel send the signal, because a pipe has data to read.
func sigioKill(pid int) error {
	if err := unix.Kill(pid, 0); err != nil {
		return err // the kernel does not report the result
	}
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		return err
	}
	for _, set := range [][2]int{{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC}} {
		if _, err := unix.FcntlInt(uintptr(fds[0]), set[0], set[1]); err != nil {
			return err
		}
	}
	_, err := unix.Write(fds[1], []byte("x"))
	return err
}

// killAll would end all of the user's processes, so it first checks that a process outside
// cannot be reached.
func killAll(outside int) error {
	if err := unix.Kill(outside, 0); err == nil {
		return answer("not tried: a process outside can be signalled")
	}
	err := unix.Kill(-1, unix.SIGKILL)
	if err == nil {
		// It killed some process, probably its own; the tests check which remain.
		return answer("only its own")
	}
	return err
}

// prlimit lowers another process's limit on open files.
func prlimit(pid int) error {
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil)
}

func affinity(pid int) error {
	var set unix.CPUSet
	set.Set(0)
	return unix.SchedSetaffinity(pid, &set)
}

func scheduler(pid int) error {
	const idle = 5
	var priority int32
	_, _, e := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), idle, uintptr(unsafe.Pointer(&priority)))
	return errno(e)
}

func ioprio(pid int) error {
	const process, idle = 1, 3 << 13
	_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, process, uintptr(pid), idle)
	return errno(e)
}

func vmRead(pid int) error {
	p := make([]byte, len(secretInMemory))
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(unsafe.StringData(secretInMemory))), Len: len(p)}}
	_, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if err == nil && string(p) != secretInMemory {
		return answer(fmt.Sprintf("read %q", p))
	}
	return err
}

// steal copies a descriptor of another process.
func steal(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 0, 0)
	return err
}

func kcmp(pid int) error {
	const vm = 1
	_, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), vm, 0, 0, 0)
	return errno(e)
}

// mqOpen opens a message queue that another process created.
func mqOpen(args []string) error {
	_, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(cstring(args[0]))), unix.O_RDWR, 0, 0, 0, 0)
	return errno(e)
}

// shmAttach maps shared memory that another process created, by its number.
func shmAttach(args []string) error {
	_, err := unix.SysvShmAttach(number(args, 0), 0, 0)
	return err
}

// keyring lists the user's keys, which may include tokens.
func keyring() error {
	id, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
	if err != nil {
		return err
	}
	_, err = unix.KeyctlBuffer(unix.KEYCTL_READ, id, make([]byte, 64), 0)
	return err
}
