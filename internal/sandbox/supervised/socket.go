//go:build linux && (amd64 || arm64)

// Package supervised is the server's side of the socket to a helper (package confine)
// on Linux: it sends a job, then orders, and receives a report. The helper is a
// process on this machine, or the first one in a container.
//
// It starts no helper, and decides nothing about a job.
package supervised

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A Socket is the socket to a helper. When it is closed, the helper takes the server
// for dead.
type Socket struct {
	file *os.File

	Listener func(*os.File) // gets and owns the job's listener, the first descriptor to arrive; nil: the job has none
	Layers   []*os.File     // of the job, once they have arrived; the caller of Answer owns them
}

// NewSocket returns a Socket that owns the connected descriptor.
func NewSocket(fd int) *Socket {
	_ = unix.SetNonblock(fd, true) // so that a read can be ended by closing
	return &Socket{file: os.NewFile(uintptr(fd), "sandbox helper")}
}

// Close closes the socket.
func (s *Socket) Close() { _ = s.file.Close() }

// Order sends an order. It does not wait, and ignores errors: either the socket is full
// of orders already, or the helper is gone.
func (s *Socket) Order(b byte) { _, _ = s.file.Write([]byte{b}) }

// Send gives the helper its job and the program's standard streams.
func (s *Socket) Send(message []byte, l *level.Launch) error {
	stdin := l.Stdin
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer null.Close()
		stdin = null
	}
	rights := unix.UnixRights(int(stdin.Fd()), int(l.Stdout.Fd()), int(l.Stderr.Fd()))
	conn, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	const head = confine.HeadSize
	var sent error
	err = conn.Write(func(fd uintptr) bool {
		var n int
		n, sent = unix.SendmsgN(int(fd), message[:head], rights, nil, unix.MSG_NOSIGNAL)
		if sent == nil && n != head {
			sent = io.ErrShortWrite
		}
		return sent != unix.EAGAIN
	})
	if err = errors.Join(err, sent); err != nil {
		return err
	}
	_, err = s.file.Write(message[head:])
	return err
}

// Answer returns the helper's final report. By then, the job's layers are in Layers; the
// caller owns them.
func (s *Socket) Answer() (*confine.Report, error) {
	var n uint32
	for n == 0 {
		var err error
		if n, err = s.head(); err != nil {
			return nil, err
		}
	}
	const most = 64 << 10
	if n > most {
		return nil, fmt.Errorf("the helper's answer has %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.file, body); err != nil {
		return nil, err
	}
	return confine.ParseReport(body)
}

// head returns the length of the next message. It passes on or keeps the descriptors
// that come with the first byte.
func (s *Socket) head() (length uint32, err error) {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var head [confine.HeadSize]byte
	control := make([]byte, unix.CmsgSpace(4*confine.MaxLayers))
	var n, cn int
	var got error
	err = conn.Read(func(fd uintptr) bool {
		n, cn, _, _, got = unix.Recvmsg(int(fd), head[:], control, unix.MSG_CMSG_CLOEXEC)
		return got != unix.EAGAIN
	})
	if err = errors.Join(err, got); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(control[:cn])
	if err != nil {
		return 0, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return 0, err
		}
		for _, fd := range fds {
			if f := os.NewFile(uintptr(fd), "sent by the helper"); s.Listener != nil {
				s.Listener(f)
				s.Listener = nil
			} else {
				s.Layers = append(s.Layers, f)
			}
		}
	}
	if _, err := io.ReadFull(s.file, head[n:]); err != nil {
		return 0, err
	}
	return confine.Length(head), nil
}

// Listens reports whether the helper, which has no job yet, is still alive.
func (s *Socket) Listens() bool {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = conn.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		alive = err == nil && n == 0
	})
	return err == nil && alive
}

// Failure returns why the program was not started.
func Failure(r *confine.Report, at sandbox.Level, l *level.Launch) error {
	c := l.Command
	errno := syscall.Errno(r.Errno)
	interpreter, isInterpreter := strings.CutPrefix(r.Step, confine.StepInterpreter)
	if why, ok := strings.CutPrefix(r.Step, confine.StepGroup); ok {
		return &sandbox.ConfineError{Level: at, Step: strings.TrimSuffix(confine.StepGroup, ": "), Err: errors.New(why)}
	}
	switch {
	case errno == syscall.ESTALE && r.Step == confine.StepProgram:
		return &program.ChangedError{Name: c.Program.Name, Path: c.Program.Path}
	case errno == syscall.ESTALE && isInterpreter:
		return &program.ChangedError{Name: c.Program.Name, Path: interpreter}
	case r.Step == confine.StepStart && errno == syscall.E2BIG:
		return level.TooLarge(l.Argv, l.Env)
	case r.Step == confine.StepStart:
		return &sandbox.StartError{Program: c.Program, Err: errno}
	case r.Step == confine.StepFolder:
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: errno}
	case errno == syscall.ESTALE && strings.HasSuffix(r.Step, confine.Replaced):
		return &sandbox.CommandError{Folder: true, Problem: r.Step}
	}
	return &sandbox.ConfineError{Level: at, Step: r.Step, Err: errno}
}

// Ending returns how a program that was started ended.
func Ending(r *confine.Report) level.Ending {
	status := syscall.WaitStatus(r.Status)
	e := level.Ending{Code: -1, Usage: sandbox.Usage{CPU: time.Duration(r.CPU) * time.Microsecond, MaxRSS: r.MaxRSS << 10}}
	if status.Exited() {
		e.Code = status.ExitStatus()
	}
	if status.Signaled() {
		e.Signal = level.SignalName(status.Signal())
		switch status.Signal() {
		case unix.SIGXCPU:
			e.Cause = sandbox.CauseCPULimit
		case unix.SIGXFSZ:
			e.Cause = sandbox.CauseFileSizeLimit
		}
	}
	if r.TooMuch {
		e.Cause = sandbox.CauseMemoryLimit
	}
	if r.TooMany {
		e.Cause = sandbox.CauseProcessLimit
	}
	return e
}
