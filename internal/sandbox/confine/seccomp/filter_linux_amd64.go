package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// refusedHere lists refused calls that only this architecture has.
func refusedHere() []int {
	return []int{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS,
		unix.SYS_QUERY_MODULE, unix.SYS_USELIB, unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_USTAT,
	}
}

// shadowStack refuses stacks of return addresses, which are memory that no limit
// counts.
func (w *filterWriter) shadowStack() {
	w.when(unix.SYS_ARCH_PRCTL, func(w *filterWriter) {
		const enable = 0x5001 // ARCH_SHSTK_ENABLE
		w.load(arg(0))
		w.oneOf(retInval, enable)
		w.ret(retAllow)
	})
}

func modeCallsHere() []modeCall {
	return []modeCall{
		{nr: unix.SYS_CHMOD, mode: 1}, {nr: unix.SYS_MKDIR, mode: 1}, {nr: unix.SYS_MKNOD, mode: 1}, {nr: unix.SYS_CREAT, mode: 1},
		{nr: unix.SYS_OPEN, mode: 2, creates: 1},
	}
}

func inotifyInitsHere() []int { return []int{unix.SYS_INOTIFY_INIT} }
