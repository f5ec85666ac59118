package seatbelt

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Start carries out an order. It returns an error if the supervisor could not be
// started; [Process.Reap] reports all other errors. It keeps none of the files.
func Start(l Launch, o *Order) (*Process, error) { return startOn(newDarwin(), l, o) }

// Main does the work of a helper with the arguments args, those after the one
// that makes this program one, and returns its exit status.
func Main(args []string) int { return helper(newDarwin(), args) }

// Check tries the [Scene] of args, prints what is wrong, and returns an exit status.
func Check(out io.Writer, args []string) int { return check(out, args, checkDarwin) }

func checkDarwin(s *Scene) []attempt {
	_, look := unix.SysctlRaw("kern.procargs2", s.Server)
	found := error(unix.ESRCH)
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err == nil && slices.ContainsFunc(infos, func(i unix.KinfoProc) bool { return int(i.Proc.P_pid) == s.Server }) {
		found = nil
	}
	return []attempt{
		{"copy a file outside by a clone", unix.Clonefile(s.Outside, filepath.Join(s.Inside, "clone"), 0)},
		{"copy a folder outside by a clone", unix.Clonefile(filepath.Dir(s.Outside), filepath.Join(s.Inside, "clones"), 0)},
		{"read the environment of the server", look},
		{"see the server among the processes", found},
	}
}

// RealPath returns path as the kernel spells it, which is what Seatbelt compares: with
// links resolved, and in the letter case of the disk.
func RealPath(path string) (string, error) {
	// O_EVTONLY: it needs no read permission and does not block.
	fd, err := unix.Open(path, unix.O_EVTONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return pathOf(fd)
}

// A darwin is the macOS system.
type darwin struct {
	kq    func() (int, error) // that of watch
	forks chan struct{}
}

func newDarwin() *darwin {
	d := &darwin{forks: make(chan struct{}, 1)}
	d.kq = sync.OnceValues(func() (int, error) {
		kq, err := kqueue()
		if err == nil {
			go d.wake(kq)
		}
		return kq, err
	})
	return d
}

func (d *darwin) list() ([]proc, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	uid := unix.Getuid()
	all := make([]proc, 0, len(infos))
	for i := range infos {
		info := &infos[i]
		p := proc{
			pid:    int(info.Proc.P_pid),
			ppid:   int(info.Eproc.Ppid),
			pgid:   int(info.Eproc.Pgid),
			uid:    int(info.Eproc.Ucred.Uid),
			start:  info.Proc.P_starttime.Nano(),
			zombie: info.Proc.P_stat == statZombie,
		}
		if p.uid == uid {
			p.sid, _ = unix.Getsid(p.pid) // it may be gone
		}
		all = append(all, p)
	}
	return all, nil
}

const statZombie = 5 // SZOMB of <sys/proc.h>

// marked cannot see the environment of the system's own programs, which the kernel
// hides.
func (d *darwin) marked(pid int, entry []byte) bool {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	return err == nil && bytes.Contains(args, append(append([]byte{0}, entry...), 0))
}

func (d *darwin) awaitExit(pid int) {
	if kq, err := kqueue(); err == nil {
		defer unix.Close(kq)
		// A process that has ended already is not found.
		for add(kq, pid, unix.NOTE_EXIT) == nil {
			events := make([]unix.Kevent_t, 1)
			if n, err := unix.Kevent(kq, nil, events, nil); n > 0 {
				return
			} else if err != nil && err != unix.EINTR {
				break
			}
		}
	}
	for !d.ended(pid) {
		time.Sleep(10 * time.Millisecond)
	}
}

// ended reports whether a child is a zombie or does not exist.
func (d *darwin) ended(pid int) bool {
	all, err := d.list()
	if err != nil {
		return false
	}
	for _, p := range all {
		if p.pid == pid {
			return p.zombie
		}
	}
	return true
}

func (d *darwin) watch(pid int) {
	if kq, err := d.kq(); err == nil {
		_ = add(kq, pid, unix.NOTE_FORK) // if it fails, the next scan finds new processes
	}
}

func (d *darwin) changed() <-chan struct{} { return d.forks }

// wake reports every fork, for as long as this process lives.
func (d *darwin) wake(kq int) {
	events := make([]unix.Kevent_t, 16)
	for {
		switch _, err := unix.Kevent(kq, nil, events, nil); err {
		case nil:
		case unix.EINTR:
			continue
		default:
			return
		}
		select {
		case d.forks <- struct{}{}:
		default: // the last event has not been handled yet
		}
	}
}

func kqueue() (int, error) {
	kq, err := unix.Kqueue()
	if err == nil {
		unix.CloseOnExec(kq)
	}
	return kq, err
}

// add asks for events of a process.
func add(kq, pid int, notes uint32) error {
	var k unix.Kevent_t
	unix.SetKevent(&k, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_CLEAR)
	k.Fflags = notes
	_, err := unix.Kevent(kq, []unix.Kevent_t{k}, nil, nil)
	return err
}
