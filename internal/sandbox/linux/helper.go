//go:build linux && (amd64 || arm64)

package linux

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

// A helper is the process that starts and supervises one program.
type helper struct {
	cmd    *exec.Cmd
	socket *supervised.Socket
	group  string // the control group of its job; empty: none
	failed bool   // it did not end by itself; set by close
}

// helperExit bounds how long a helper may take to exit after its answer. It removes
// its control group in that time, which may take two seconds.
const helperExit = 3 * time.Second

func startHelper() (*helper, error) {
	level.KeepDescriptors()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "sandbox helper")
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", // the running program, whatever its path leads to now
		Args: []string{"packs-mcp", confine.Arg},
		// A helper mostly waits, and fewer threads start sooner.
		Env:         []string{"GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"},
		Dir:         "/",
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		_ = unix.Close(pair[0])
		return nil, err
	}
	return &helper{cmd: cmd, socket: supervised.NewSocket(pair[0])}, nil
}

// tidy removes what a closed helper could not remove itself. No process of its job is
// left by then.
func (h *helper) tidy() {
	if h.failed && h.group != "" {
		groups.Remove(h.group)
	}
}

// close ends the helper and waits for it.
func (h *helper) close() {
	h.socket.Close()
	late := time.AfterFunc(helperExit, func() { _ = h.cmd.Process.Kill() })
	h.failed = h.cmd.Wait() != nil
	late.Stop()
}

// spareFor is how long an idle helper is kept. It takes some 4 MB.
const spareFor = 30 * time.Second

// spares keeps a helper ready for the next run. Starting one is the larger part of a
// confined start, so only the first run waits for it. The zero value is ready. Safe
// for concurrent use.
type spares struct {
	mu     sync.Mutex
	ready  *helper     // guarded by mu; nil: none
	idle   *time.Timer // ends the idle helper; guarded by mu
	closed bool        // guarded by mu
	work   sync.WaitGroup
}

// take returns a helper for one job.
func (s *spares) take() (*helper, error) {
	if h := s.swap(nil); h != nil {
		if h.socket.Listens() {
			return h, nil
		}
		h.close()
	}
	return startHelper()
}

// refillDuring is how long into a run the next helper is started, for runs at the same
// time. Earlier, it would slow the run down.
const refillDuring = 100 * time.Millisecond

// refillAfter is how long after a run's end the next helper is started: after its
// answer was sent, and before the next call can reach its own run.
const refillAfter = 2 * time.Millisecond

// refill starts a helper when the run is over or has lasted for refillDuring, unless
// one is ready by then.
func (s *spares) refill(over <-chan struct{}) {
	s.background(func() {
		select {
		case <-over:
			time.Sleep(refillAfter)
		case <-time.After(refillDuring):
		}
		s.mu.Lock()
		wanted := s.ready == nil && !s.closed
		s.mu.Unlock()
		if !wanted {
			return
		}
		h, err := startHelper()
		if err != nil {
			return // the next run tries again, and reports the error
		}
		if other := s.swap(h); other != nil {
			other.close()
		}
	})
}

// dismiss ends a helper whose job is done. Only close waits for that.
func (s *spares) dismiss(h *helper) {
	bury := func() {
		h.close()
		h.tidy()
	}
	if !s.background(bury) {
		bury()
	}
}

// background runs work in a goroutine that close waits for. After close it does
// nothing and returns false.
func (s *spares) background(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(work)
	}
	return !s.closed
}

// swap makes h the ready helper and returns the one it replaces; nil: there is none.
func (s *spares) swap(h *helper) *helper {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && h != nil {
		return h
	}
	old := s.ready
	s.ready = h
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	if h != nil {
		s.idle = time.AfterFunc(spareFor, func() {
			if old := s.swap(nil); old != nil {
				old.close()
			}
		})
	}
	return old
}

// close ends the idle helper, and keeps others from becoming idle.
func (s *spares) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	if h := s.swap(nil); h != nil {
		h.close()
	}
}
