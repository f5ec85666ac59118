//go:build amd64 || arm64

package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

// Arg is the first argument that makes this program the helper in a container.
const Arg = "__packs-mcp-container"

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg && os.Getpid() == 1 {
		os.Exit(inside())
	}
}

// A request is sent to the helper before its job: one line.
type request struct {
	Given *given // what the container must have

	// Verify is the program that must be unchanged; without a path, there is nothing to
	// compare. The job follows the answer.
	Verify *program.Program `json:",omitempty"`

	// Listen is the port of the container's loopback interface whose listener the server
	// gets, between the answer and the job; 0: none.
	Listen int `json:",omitempty"`

	// Name is a program to look up, with Options. Nothing follows the answer.
	Name    string
	Options program.LookupOptions
}

// An answer is the helper's answer to a request: one line.
type answer struct {
	Program  program.Program
	Checked  []checked
	Landlock int              // the ABI of the container's kernel; 0: it has none
	Limits   map[string]int64 // see insideLimits
	Foreign  bool             // the container has a kernel of its own; see kernel

	// One of these is set if there is no such program.
	NotFound      *program.NotFoundError      `json:",omitempty"`
	NotExecutable *program.NotExecutableError `json:",omitempty"`
	Changed       *changed                    `json:",omitempty"`
	Problem       string                      `json:",omitempty"`
}

type checked struct {
	Path  string
	State confine.State
}

type changed struct{ Name, Path string }

// set keeps an error in a, for err to return.
func (a *answer) set(err error) {
	if e, ok := errors.AsType[*program.NotFoundError](err); ok {
		a.NotFound = e
	} else if e, ok := errors.AsType[*program.NotExecutableError](err); ok {
		a.NotExecutable = e
	} else if e, ok := errors.AsType[*program.ChangedError](err); ok {
		a.Changed = &changed{e.Name, e.Path}
	} else if err != nil {
		a.Problem = err.Error()
	}
}

func (a *answer) err() error {
	switch {
	case a.NotFound != nil:
		return a.NotFound
	case a.NotExecutable != nil:
		return a.NotExecutable
	case a.Changed != nil:
		return &program.ChangedError{Name: a.Changed.Name, Path: a.Changed.Path}
	case a.Problem != "":
		return errors.New(a.Problem)
	}
	return nil
}

// inside does all the work of a container's first process, and returns its exit
// status.
func inside() int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 1
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socketPath}); err != nil {
		return 2
	}
	if fd != confine.Lifeline {
		if err := unix.Dup3(fd, confine.Lifeline, unix.O_CLOEXEC); err != nil {
			return 3
		}
		_ = unix.Close(fd)
	}
	var q request
	if err := readLine(readSocket, &q); err != nil {
		return 4
	}
	a := answer{Landlock: supervised.LandlockABI()}
	if q.Given == nil {
		a.set(errors.New("the server does not say what the container must have"))
	} else {
		a.Foreign = q.Given.Kernel.differs(kernelAt(helperPath))
		a.set(q.Given.check(a.Foreign))
	}
	if !a.Foreign { // its own control groups bound nothing on this machine
		a.Limits = insideLimits()
	}
	if q.Verify == nil {
		if a.err() == nil {
			a.Program, err = program.Lookup(q.Name, q.Options)
			a.set(err)
		}
		say(&a)
		return 0
	}
	if q.Verify.Path != "" && a.err() == nil {
		a.set(verifyHere(*q.Verify, &a))
	}
	listener := -1
	if q.Listen != 0 && a.err() == nil {
		listener, err = listenHere(q.Listen)
		a.set(err)
	}
	if !say(&a) || a.err() != nil {
		return 5
	}
	if listener >= 0 {
		var nothing [confine.HeadSize]byte // a message without a body: see confine.MaxLayers
		if unix.Sendmsg(confine.Lifeline, nothing[:], unix.UnixRights(listener), nil, unix.MSG_NOSIGNAL) != nil {
			return 6
		}
		_ = unix.Close(listener)
	}
	return confine.Help()
}

// listenHere listens on a port of the container's loopback interface. Connections from
// inside reach the server outside.
func listenHere(port int) (fd int, err error) {
	const waiting = 128 // connections not yet accepted
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port})
	}
	if err == nil {
		err = unix.Listen(fd, waiting)
	}
	if err != nil {
		return -1, fmt.Errorf("listening for the program in the container: %w", err)
	}
	return fd, nil
}

// verifyHere compares the program with the files in this container.
func verifyHere(p program.Program, a *answer) error {
	all, err := new(program.Lookuper).Verify(p)
	for i, path := range p.Files() {
		if i < len(all) {
			a.Checked = append(a.Checked, checked{path, supervised.StateOf(all[i].Stamp)})
		}
	}
	return err
}

func readSocket(b []byte) (int, error) {
	for {
		n, err := unix.Read(confine.Lifeline, b)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// say sends an answer to the server, and reports whether it could.
func say(a *answer) bool {
	text, err := line(a)
	for len(text) > 0 && err == nil {
		var n int
		if n, err = unix.Write(confine.Lifeline, text); err == nil {
			text = text[n:]
		}
	}
	return err == nil
}

// ask sends a request to the helper in the container of c. An error means that nothing can
// run in it; failures of the request itself are in the answer.
func (b *box) ask(c *spec, q request) (*answer, error) {
	a := &answer{}
	q.Given.Kernel = b.kernel
	_ = b.conn.SetDeadline(time.Now().Add(callTime))
	err := writeLine(b.conn, q)
	if err == nil {
		err = readLine(b.conn.Read, a)
	}
	_ = b.conn.SetDeadline(time.Time{})
	if err == nil && a.Problem != "" {
		err = errors.New(a.Problem)
	}
	if err == nil {
		err = bounded(c, b.limits, a.Limits)
	}
	return a, err
}

// lookup has a helper look for a program in a container.
func (s *System) lookup(ctx context.Context, name, packDir string) (program.Program, error) {
	p, err := s.here(ctx)
	if err != nil {
		return program.Program{}, err
	}
	env, err := s.Environ(ctx)
	if err != nil {
		return program.Program{}, err
	}
	o := program.LookupOptions{PackDir: packDir} // there is no home in an image, and no project
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			o.Path = path
		}
	}
	c := newSpec(p, s.o.Runtime, sandbox.DefaultLimits())
	if packDir != "" {
		if paths.WithoutLinks(packDir) != packDir {
			return program.Program{}, &sandbox.CommandError{Folder: true, Problem: "the pack's folder is reached through a symbolic link"}
		}
		o.Exclude = []string{packDir}
		c.bind(packDir, packDir, false)
	}
	b, err := s.launch(ctx, p, c)
	if err != nil {
		return program.Program{}, &sandbox.ConfineError{Level: sandbox.LevelFull, Step: "making a container", Err: err}
	}
	defer b.discard()
	a, err := b.ask(c, request{Given: givenOf(c), Name: name, Options: o})
	if err != nil {
		return program.Program{}, &sandbox.ConfineError{Level: sandbox.LevelFull, Step: "looking for the program in the image", Err: err}
	}
	// All of the image can be read.
	a.Program.Needs, a.Program.Links = nil, nil
	return a.Program, a.err()
}
