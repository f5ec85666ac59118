//go:build amd64 || arm64

package broker

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/memory"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/seccomp"
)

// A run's share of the user's inotify instances and watches, of which all of the
// user's programs have one total. Where the kernel counts for the run alone, these
// limit how many it has at one time; where the broker counts, how many it ever makes.
const (
	MaxInotifyInstances = 16
	MaxInotifyWatches   = 8192
)

// A Broker answers the questions of the program's filter. It decides by numbers in
// registers, which nobody can change while a call waits.
type Broker struct {
	FD      int32 // to poll; -1: no more questions will come
	started bool  // FD yields questions; before, it yields their descriptor
	memory  *memory.Shared

	instances, watches int // of inotify, made so far
}

// New returns a Broker that receives the descriptor for questions through a socket.
func New(socket int, shared *memory.Shared) *Broker {
	return &Broker{FD: int32(socket), memory: shared}
}

// A question is struct seccomp_notif.
type question struct {
	id    uint64
	pid   uint32 // of the thread
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// An Answer is struct seccomp_notif_resp.
type Answer struct {
	id    uint64
	val   int64
	errno int32
	Flags uint32
}

// Attend handles the events that a poll of FD returned.
func (b *Broker) Attend(events int16) {
	switch {
	case !b.started:
		fd := receiveDescriptor(int(b.FD))
		_ = unix.Close(int(b.FD))
		b.FD, b.started = int32(fd), true
		if fd >= 0 {
			// From Linux 6.6 on, the program continues on the processor that gave the answer.
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
		}
	case events&unix.POLLIN != 0:
		b.reply()
	default: // no process has the filter any more
		_ = unix.Close(int(b.FD))
		b.FD = -1
	}
}

// reply answers one question. A thread that was killed meanwhile needs no answer.
func (b *Broker) reply() {
	var q question
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.FD), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno != 0 {
		return
	}
	a := Answer{id: q.id, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if errno := b.decide(&q); errno != 0 {
		a.Flags, a.errno = 0, -int32(errno)
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(b.FD), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}

// decide returns the errno with which a call fails, or 0 to allow it.
func (b *Broker) decide(q *question) unix.Errno {
	const (
		queueSize     = 2 << 20 // bytes that a message queue may take, including the kernel's overhead for each message
		semaphoreSize = 128     // bytes of one
	)
	if slices.Contains(seccomp.InotifyInits(), int(q.nr)) {
		if b.instances++; b.instances > MaxInotifyInstances {
			return unix.EMFILE
		}
		return 0
	}
	ok := false
	switch q.nr {
	case unix.SYS_INOTIFY_ADD_WATCH:
		b.watches++
		ok = b.watches <= MaxInotifyWatches
	case unix.SYS_MMAP:
		ok = b.memory.Share(q.pid, q.args[1])
	case unix.SYS_SHMGET:
		ok = b.memory.Keep(q.args[1])
	case unix.SYS_MSGGET:
		ok = b.memory.Keep(queueSize)
	case unix.SYS_SEMGET:
		ok = q.args[1] < 1<<16 && b.memory.Keep(q.args[1]*semaphoreSize)
	}
	if ok {
		return 0
	}
	if q.nr == unix.SYS_MMAP {
		return unix.ENOMEM
	}
	return unix.ENOSPC
}

// receiveDescriptor returns the descriptor in a message, or -1.
func receiveDescriptor(socket int) int {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1
	}
	return fds[0]
}
