//go:build darwin || linux

package seatbelt

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Scene is the set of files for a trial run. The program tries to use them, and
// reports what wrongly succeeds or fails.
type Scene struct {
	Inside    string // a folder that can be changed
	Pack      string // a file that can be read
	Outside   string // a file that must be out of reach
	HardLinks bool   // see Rules
	Server    int    // a process that must not get signals
	Port      int    // of a TCP server on this machine
}

// NewScene makes the files of a Scene in the folder dir.
func NewScene(dir string) (*Scene, error) {
	s := &Scene{
		Inside: filepath.Join(dir, "inside"), Pack: filepath.Join(dir, "pack", "file"), Outside: filepath.Join(dir, "outside", "file"),
		Server: os.Getpid(),
	}
	if err := os.MkdirAll(s.Inside, 0o700); err != nil {
		return nil, err
	}
	for _, file := range []string{s.Pack, s.Outside} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte("scene"), 0o600); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Args returns the arguments of the trial's program.
func (s *Scene) Args() []string {
	b, _ := json.Marshal(s) // cannot fail: all of it fits JSON
	return []string{string(b)}
}

// check tries the Scene of args, prints what is wrong, and returns an exit status. It
// tries operations that must work and operations that must fail, among them those of
// more, if it is not nil.
func check(out io.Writer, args []string, more func(*Scene) []attempt) int {
	var s Scene
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &s) != nil {
		fmt.Fprintln(out, "the trial run got no scene")
		return 2
	}
	code := 0
	amiss := func(what string, err error) {
		code = 1
		if err != nil {
			what += ": " + err.Error()
		}
		fmt.Fprintln(out, what)
	}
	for _, can := range s.should() {
		if can.err != nil {
			amiss("it cannot "+can.what, can.err)
		}
	}
	not := s.shouldNot()
	if more != nil {
		not = append(not, more(&s)...)
	}
	for _, can := range not {
		if can.err == nil {
			amiss("it can "+can.what, nil)
		}
	}
	return code
}

// An attempt is one operation and its result.
type attempt struct {
	what string
	err  error // nil: it worked
}

// should does the operations that must work.
func (s *Scene) should() []attempt {
	_, readPack := os.ReadFile(s.Pack)
	file, other := filepath.Join(s.Inside, "file"), filepath.Join(s.Inside, "other")
	list := []attempt{
		{"read its pack", readPack},
		{"make a file", os.WriteFile(file, nil, 0o600)},
		{"rename a file", os.Rename(file, other)},
		{"make a folder", os.Mkdir(filepath.Join(s.Inside, "folder"), 0o700)},
		{"write to " + os.DevNull, write(os.DevNull)},
	}
	if s.HardLinks {
		list = append(list, attempt{"make a hard link", os.Link(other, filepath.Join(s.Inside, "link"))})
	}
	return append(list, attempt{"remove a file", os.Remove(other)})
}

// shouldNot does the operations that must fail.
func (s *Scene) shouldNot() []attempt {
	_, read := os.ReadFile(s.Outside)
	_, look := os.Lstat(s.Outside)
	_, list := os.ReadDir(filepath.Dir(s.Outside))
	in := func(name string) string { return filepath.Join(s.Inside, name) }
	return []attempt{
		{"read a file outside", read},
		{"look at a file outside", look},
		{"list a folder outside", list},
		{"change a file outside", write(s.Outside)},
		{"change the mode of a file outside", os.Chmod(s.Outside, 0o600)},
		{"make a file outside", os.WriteFile(s.Outside+"2", nil, 0o600)},
		{"give a file outside a second name", os.Link(s.Outside, in("outside"))},
		{"move a file outside", os.Rename(s.Outside, in("moved"))},
		{"change its pack", write(s.Pack)},
		{"change the mode of its pack", os.Chmod(s.Pack, 0o600)},
		{"give its pack a second name", os.Link(s.Pack, in("pack"))},
		{"send a signal to the server", unix.Kill(s.Server, 0)},
		{"send a signal to its parent", unix.Kill(os.Getppid(), 0)},
		{"connect to a server on this machine", connect(unix.SOCK_STREAM, s.Port)},
		{"send to a port on this machine", connect(unix.SOCK_DGRAM, s.Port)},
		{"wait for connections", bind()},
	}
}

// write opens a file for writing, and writes nothing.
func write(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func connect(kind, port int) error {
	fd, err := unix.Socket(unix.AF_INET, kind, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	if kind == unix.SOCK_DGRAM {
		return unix.Sendto(fd, []byte("x"), 0, to)
	}
	return unix.Connect(fd, to)
}

func bind() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	return unix.Listen(fd, 1)
}

// Listen opens a TCP server on this machine, for a [Scene]'s Port. It answers nothing.
func Listen() (port int, done func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, nil, err
	}
	syscall.CloseOnExec(fd)
	done = func() { _ = unix.Close(fd) }
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, 4)
	}
	if err == nil {
		var name unix.Sockaddr
		if name, err = unix.Getsockname(fd); err == nil {
			return name.(*unix.SockaddrInet4).Port, done, nil // the requested family
		}
	}
	done()
	return 0, nil, err
}
