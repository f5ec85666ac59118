//go:build linux

package main

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// block WHAT[,WHAT] -- PROGRAM ARGS... executes another program on a machine that seems to
// lack "userns" or "landlock". With "listener", it stays as the program's parent and answers
// its own filter, as the manager of a container does, so that no other filter can have a
// listener.
func block(args []string) int {
	at := slices.Index(args, "--")
	if at != 1 || len(args) < 3 {
		fail("usage: probe block userns,landlock -- PROGRAM ARGS...")
	}
	var filter []unix.SockFilter
	answers := false
	for what := range strings.SplitSeq(args[0], ",") {
		switch what {
		case "userns":
			filter = append(filter, noUserNamespaces()...)
		case "landlock":
			filter = append(filter, noLandlock()...)
		case "listener":
			answers = true
			filter = append(filter, onCall(unix.SYS_UNAME, answerWith(unix.SECCOMP_RET_USER_NOTIF))...)
		default:
			fail("there is no way to block " + what)
		}
	}
	filter = append(filter, answerWith(unix.SECCOMP_RET_ALLOW))
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}

	runtime.LockOSThread() // the thread with the filter must be the one that executes the program
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fail(err.Error())
	}
	flags := uintptr(0)
	if answers {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	listener, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		fail("seccomp: " + e.Error())
	}
	if answers {
		go letAllGoOn(int(listener))
		return runChild(args[2:])
	}
	err := unix.Exec(args[2], args[2:], os.Environ())
	fail(args[2] + ": " + err.Error())
	return 99
}

// runChild runs a program from this thread and returns its status. The program ends with
// this process.
func runChild(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode()
}

// letAllGoOn answers every question of a filter with "continue". It must run on a thread
// without that filter.
func letAllGoOn(listener int) {
	for {
		var question [80]byte // struct seccomp_notif
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&question))); e != 0 {
			continue // the asking process is gone
		}
		answer := struct {
			id    [8]byte
			val   int64
			errno int32
			flags uint32
		}{id: [8]byte(question[:8]), flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}
}

// Offsets in struct seccomp_data, and parts of a filter.
const (
	offNumber = 0
	offFirst  = 16 // the low half of the first argument, on little-endian machines
	load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	ifEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ifSet     = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
)

func answerWith(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}

func refuse(e unix.Errno) unix.SockFilter { return answerWith(unix.SECCOMP_RET_ERRNO | uint32(e)) }

func loaded(offset uint32) unix.SockFilter { return unix.SockFilter{Code: load, K: offset} }

// onCall returns instructions that do then if the call has this number.
func onCall(number uint32, then unix.SockFilter) []unix.SockFilter {
	return []unix.SockFilter{loaded(offNumber), {Code: ifEqual, K: number, Jf: 1}, then}
}

func noUserNamespaces() []unix.SockFilter {
	filter := onCall(unix.SYS_CLONE3, refuse(unix.ENOSYS)) // a filter cannot read its flags
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		filter = append(filter, loaded(offNumber),
			unix.SockFilter{Code: ifEqual, K: number, Jf: 3}, loaded(offFirst),
			unix.SockFilter{Code: ifSet, K: unix.CLONE_NEWUSER, Jf: 1}, refuse(unix.EPERM))
	}
	return filter
}

func noLandlock() []unix.SockFilter {
	var filter []unix.SockFilter
	for _, number := range []uint32{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF} {
		filter = append(filter, onCall(number, refuse(unix.ENOSYS))...)
	}
	return filter
}
