package sandbox_test

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canHide says that hide works here.
const canHide = true

// hide makes this process, and everything it starts from now on, see a kernel that
// lacks the named feature.
func hide(what string) error {
	const number, arg0 = 0, 16 // offsets in struct seccomp_data
	var filter []unix.SockFilter
	load := func(offset uint32) {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
	}
	// unless skips some of the next steps if the comparison is false.
	unless := func(comparison uint16, k uint32, steps uint8) {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: k, Jf: steps})
	}
	answer := func(k uint32) {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k})
	}
	refuse := func(errno unix.Errno) { answer(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

	load(number)
	switch what {
	case "landlock":
		for _, nr := range []uint32{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF} {
			unless(unix.BPF_JEQ, nr, 1)
			refuse(unix.ENOSYS)
		}
	case "userns":
		unless(unix.BPF_JEQ, unix.SYS_CLONE3, 1)
		refuse(unix.ENOSYS) // its flags cannot be examined; its users have a fallback
		for _, nr := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
			unless(unix.BPF_JEQ, nr, 4)
			load(arg0) // the flags' lower half, on the machines that this is made for
			unless(unix.BPF_JSET, unix.CLONE_NEWUSER, 1)
			refuse(unix.EPERM)
			answer(unix.SECCOMP_RET_ALLOW)
		}
	default:
		return fmt.Errorf("nobody knows how to hide %q", what)
	}
	answer(unix.SECCOMP_RET_ALLOW)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // until both calls are made
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// TSYNC: applies to all threads, or returns the id of one that refuses.
	tid, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return errno
	case tid != 0:
		return fmt.Errorf("thread %d has another filter", tid)
	}
	return nil
}
