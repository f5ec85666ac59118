//go:build amd64 || arm64

package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/broker"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/seccomp"
)

// seccomp installs the filter, and sends its listener's descriptor to the supervisor.
// The kernel allows no second filter with a listener.
func (p *plan) seccomp(f seccomp.Filter) {
	code := f.Program()
	p.keep = append(p.keep, code)
	program := unsafe.Pointer(&unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
	if f.NoListener {
		p.call("install the seccomp filter", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, program)
		return
	}
	p.call(StepListen, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listenerFlags(), program).out = uint8(slotFrom)
	// Linux 5.0 to 5.4 cannot continue a call. Later kernels answer ENOENT here, since
	// there is no question yet.
	p.call(StepListen, unix.SYS_IOCTL, slotFrom, unix.SECCOMP_IOCTL_NOTIF_SEND,
		unsafe.Pointer(&broker.Answer{Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})).ignore[0] = uintptr(unix.ENOENT)
	p.pass("send the filter's questions to the supervisor", fdQuestions, slotFrom)
}

// listenerFlags returns the flags of a filter with a listener. From Linux 5.19 on, a
// signal does not withdraw a question that the supervisor has received.
func listenerFlags() uintptr {
	const ask = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	// Without a filter, the kernel checks the flags and then fails.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, ask|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0)
	if errno == unix.EFAULT {
		return ask | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	return ask
}
