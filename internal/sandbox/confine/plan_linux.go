//go:build amd64 || arm64

package confine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A step is one system call of a plan. Each argument is known when the plan is made,
// or comes from an earlier step.
type step struct {
	kind   stepKind
	out    uint8    // slot that gets the result; 0: none
	from   [6]uint8 // slots with the arguments; 0: it is in arg
	nr     uintptr
	arg    [6]uintptr
	ignore [2]uintptr // errnos that count as success and end a group
	skip   int        // steps to pass over after an ignored errno
}

type stepKind uint8

const (
	doCall   stepKind = iota
	doParent          // put the descriptor of slot from[0] into rule arg[0]
	doExpect          // fail unless the folder in stat has the id arg[0], arg[1]
	doSame            // fail unless the file in stat has the state state[arg[0]]
	doResult          // fail unless the last result, arg[0], is arg[1]
	doPass            // put the descriptor of slot from[0] into the message that is sent next
)

const slots = 8

// A plan is what a child does between fork and exec. It is made beforehand, with
// everything it refers to, since the child cannot allocate.
type plan struct {
	steps []step
	what  []string // what each step is for
	rules []pathBeneath
	stat  unix.Statx_t // compared by doExpect and doSame
	state []State
	slot  [slots]uintptr
	sent  *int32 // where a message holds the descriptor to send

	uppers int // number of layers made so far, while planning

	keep []any // what the arguments point to
}

// pathBeneath is struct landlock_path_beneath_attr, which is packed; the
// kernel reads 12 bytes.
type pathBeneath struct {
	access uint64
	parent int32
	_      int32
}

// fdCWD is AT_FDCWD as an argument.
const fdCWD = ^uintptr(99)

// A ref is an argument that comes from an earlier step.
type ref uint8

// call adds a system call. Its arguments are uintptr, int, string, ref, or
// pointers to what the plan then keeps alive.
func (p *plan) call(what string, nr uintptr, args ...any) *step {
	p.steps = append(p.steps, step{nr: nr})
	p.what = append(p.what, what)
	s := &p.steps[len(p.steps)-1]
	for i, a := range args {
		switch a := a.(type) {
		case uintptr:
			s.arg[i] = a
		case int:
			s.arg[i] = uintptr(a)
		case uint64:
			s.arg[i] = uintptr(a)
		case ref:
			s.from[i] = uint8(a)
		case string:
			s.arg[i] = p.cstring(a)
		case unsafe.Pointer:
			p.keep = append(p.keep, a)
			s.arg[i] = uintptr(a)
		default:
			panic("confine: an argument of a plan has an unknown type")
		}
	}
	return s
}

func (p *plan) cstring(s string) uintptr {
	b := append([]byte(s), 0)
	p.keep = append(p.keep, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

// cstrings returns the address of a list of strings as execve(2) takes it.
func (p *plan) cstrings(list []string) uintptr {
	addrs := make([]uintptr, len(list)+1)
	for i, s := range list {
		addrs[i] = p.cstring(s)
	}
	p.keep = append(p.keep, addrs)
	return uintptr(unsafe.Pointer(&addrs[0]))
}

// expect adds a check of the identity of an open folder.
func (p *plan) expect(what string, fd ref, id ID) {
	if id == (ID{}) {
		return
	}
	p.call(what, unix.SYS_STATX, fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO, unsafe.Pointer(&p.stat))
	s := p.call(what, 0)
	s.kind, s.arg[0], s.arg[1] = doExpect, uintptr(id.Dev), uintptr(id.Ino)
}

// same adds a check of the state in p.stat, where an earlier step put it.
func (p *plan) same(what string, state State) {
	p.state = append(p.state, state)
	s := p.call(what, 0)
	s.kind, s.arg[0] = doSame, uintptr(len(p.state)-1)
}

// pass adds sending the descriptor of a slot through a socket. A plan has one
// such step.
func (p *plan) pass(what string, to int, fd ref) {
	control := unix.UnixRights(0)
	data := []byte{0}
	iov := &unix.Iovec{Base: &data[0]}
	iov.SetLen(len(data))
	msg := &unix.Msghdr{Iov: iov, Iovlen: 1, Control: &control[0]}
	msg.SetControllen(len(control))
	p.keep = append(p.keep, control, data, iov)
	p.sent = (*int32)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
	s := p.call(what, 0)
	s.kind, s.from[0] = doPass, uint8(fd)
	p.call(what, unix.SYS_SENDMSG, to, unsafe.Pointer(msg), 0)
}

// stateMask selects the attributes that same compares.
const stateMask = unix.STATX_INO | unix.STATX_SIZE | unix.STATX_CTIME

// run carries out the plan, once. It returns -1, or the failed step and its errno.
//
// It runs in a forked child, of which only this thread is left: nothing that it
// calls may allocate, grow the stack, take a lock, or be instrumented.
//
//go:nosplit
//go:norace
func (p *plan) run() (failed int, errno uintptr) {
	for i := 0; i < len(p.steps); i++ {
		s := &p.steps[i]
		for j := range s.arg {
			if n := s.from[j]; n != 0 {
				s.arg[j] = p.slot[n%slots]
			}
		}
		switch s.kind {
		case doParent:
			p.rules[s.arg[0]].parent = int32(s.arg[1])
			continue
		case doResult:
			if s.arg[0] != s.arg[1] {
				return i, uintptr(unix.EPIPE)
			}
			continue
		case doPass:
			*p.sent = int32(s.arg[0])
			continue
		case doExpect:
			if uint64(p.stat.Dev_major)<<32|uint64(p.stat.Dev_minor) != uint64(s.arg[0]) || p.stat.Ino != uint64(s.arg[1]) {
				return i, uintptr(unix.ESTALE)
			}
			continue
		}
		if s.kind == doSame {
			want := &p.state[s.arg[0]]
			if uint64(p.stat.Dev_major)<<32|uint64(p.stat.Dev_minor) != want.Dev && want.Dev != 0 || p.stat.Ino != want.Ino || p.stat.Size != want.Size ||
				uint64(p.stat.Ctime.Sec) != want.Seconds || uint64(p.stat.Ctime.Nsec) != want.Nanoseconds {
				return i, uintptr(unix.ESTALE)
			}
			continue
		}
		r, _, e := syscall.RawSyscall6(s.nr, s.arg[0], s.arg[1], s.arg[2], s.arg[3], s.arg[4], s.arg[5])
		if e != 0 {
			if uintptr(e) != s.ignore[0] && uintptr(e) != s.ignore[1] {
				return i, uintptr(e)
			}
			i += s.skip
			continue
		}
		if s.out != 0 {
			p.slot[s.out%slots] = r
		}
	}
	return -1, 0
}
