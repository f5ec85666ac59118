//go:build darwin || linux

package seatbelt

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A system has the operations that differ between Unix systems.
type system interface {
	// list returns all processes, of all users.
	list() ([]proc, error)

	// marked reports whether a process was started with this entry in its environment,
	// as far as the system shows it.
	marked(pid int, entry []byte) bool

	// awaitExit waits until a child has ended, without reaping it.
	awaitExit(pid int)

	// watch sends to changed when the process forks.
	watch(pid int)
	changed() <-chan struct{}
}

// The descriptors of a supervisor besides the program's standard streams.
const (
	fdOrders  = 3 // from the server
	fdReports = 4 // to the server
)

const (
	scanEvery = 100 * time.Millisecond // longest interval between scans for new processes
	killWait  = 2 * time.Second        // how long killed processes may take to disappear
)

// helper does the work of a helper with the arguments args, and returns its
// exit status.
func helper(sys system, args []string) int {
	switch {
	case len(args) == 2 && args[0] == modeSupervise: // the argument that makes a helper
		return supervise(sys, args[1])
	case len(args) > 2 && args[0] == modeExec:
		return confined(args[1], args[2:])
	}
	return 2
}

// supervise carries out one order, and ends all its processes.
func supervise(sys system, arg string) int {
	orders, reports := os.NewFile(fdOrders, "orders"), os.NewFile(fdReports, "reports")
	for fd := fdOrders; fd < 256; fd++ { // and any other inherited descriptor
		syscall.CloseOnExec(fd)
	}
	in := bufio.NewReader(orders)
	out := json.NewEncoder(reports)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return 1 // the server cancelled the order or is gone
	}
	var o Order
	if err := json.Unmarshal(line, &o); err != nil || len(o.Argv) == 0 {
		_ = out.Encode(report{Ending: failed(StepHelper, 0, "the order cannot be read; was this program's file exchanged while it ran?")})
		return 1
	}
	s := &supervisor{sys: sys, order: &o}
	if f := s.start(arg); f != nil {
		_ = out.Encode(report{Ending: &Ending{Failure: f}})
		return 1
	}
	_ = out.Encode(report{PID: s.pid})
	s.untilExit(in)
	_ = out.Encode(report{Exited: true})
	_ = out.Encode(report{Ending: s.end()})
	return 0
}

func failed(step Step, errno int, text string) *Ending {
	return &Ending{Failure: &Failure{step, errno, text}}
}

// A supervisor supervises one run.
type supervisor struct {
	sys    system
	order  *Order
	pid    int // of sandbox-exec, which becomes the program
	tree   *tree
	status <-chan string // the output of the confined helper's pipe; sent once
	killed bool          // by us, or asked to end
	many   bool          // for too many processes
}

// start starts sandbox-exec. Its standard error is a pipe to us, and its descriptor 3
// is the program's standard error, until the confined helper moves that to its place.
func (s *supervisor) start(arg string) *Failure {
	o := s.order
	if err := os.Chdir(string(o.Dir)); err != nil {
		return failure(StepChdir, err)
	}
	if o.DirID != (ID{}) {
		info, err := os.Stat(".")
		if err != nil {
			return failure(StepChdir, err)
		}
		if IDOf(info) != o.DirID {
			return failure(StepChdir, unix.ESTALE)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return failure(StepHelper, err)
	}
	limits := o.Limits
	if limits.Processes > 0 {
		// The system's limit counts all processes of a user.
		all, err := s.sys.list()
		if err != nil {
			return failure(StepHelper, err)
		}
		for _, p := range all {
			if p.uid == os.Getuid() {
				limits.Processes++
			}
		}
	}
	text, err := json.Marshal(limits)
	if err != nil {
		return failure(StepHelper, err)
	}
	argv := []string{self, arg, modeExec, string(text)}
	for _, a := range o.Argv {
		argv = append(argv, string(a))
	}
	var env []string
	for _, kv := range o.Env {
		env = append(env, string(kv))
	}
	r, w, err := os.Pipe()
	if err != nil {
		return failure(StepHelper, err)
	}
	sandboxExec := o.SandboxExec
	if sandboxExec == "" {
		sandboxExec = SandboxExec
	}
	s.pid, err = syscall.ForkExec(sandboxExec, o.Profile.Args(sandboxExec, argv...), &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, w.Fd(), 2},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return failure(StepConfine, err)
	}
	// Readers of the program's output wait until every process has closed it.
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for fd := range 3 {
			_ = dup(int(null.Fd()), fd)
		}
		_ = null.Close()
	}
	s.tree = newTree(s.pid, os.Getpid(), unix.Getpgrp())
	status := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(r, 4096))
		status <- string(text)
	}()
	s.status = status
	return nil
}

// IDOf returns the ID of a folder.
func IDOf(info os.FileInfo) ID {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ID{}
	}
	return ID{uint64(st.Dev), uint64(st.Ino)}
}

func failure(step Step, err error) *Failure {
	f := &Failure{Step: step, Text: err.Error()}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		f.Errno = int(errno)
	}
	return f
}

// untilExit carries out the server's requests until the program has ended.
func (s *supervisor) untilExit(in io.ByteReader) {
	exited := make(chan struct{})
	go func() {
		s.sys.awaitExit(s.pid)
		close(exited)
	}()
	orders := make(chan byte)
	go func() {
		defer close(orders)
		for {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			orders <- b
		}
	}()
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	s.scan()
	for {
		select {
		case <-exited:
			return
		case b, ok := <-orders:
			switch {
			case !ok:
				orders = nil
				s.kill()
			case b == orderTerminate:
				s.terminate()
			}
		case <-s.sys.changed():
			s.scan()
		case <-tick.C:
			s.scan()
		}
	}
}

// scan looks for new processes of the run, and returns all that are alive.
func (s *supervisor) scan() []proc {
	live := living(s.sys, s.tree, nil)
	if most := s.order.Limits.Processes; most > 0 && len(live) > most && !s.many {
		s.many = true
		s.kill()
	}
	return live
}

func (s *supervisor) terminate() {
	s.killed = true
	_ = unix.Kill(-s.pid, unix.SIGTERM) // ESRCH: it is gone already
	for _, p := range s.scan() {
		if p.pgid != s.pid {
			_ = unix.Kill(p.pid, unix.SIGTERM)
		}
	}
}

func (s *supervisor) kill() {
	s.killed = true
	sweep(s.sys, s.tree, s.order.Mark)
}

// end kills the processes that are left, and returns how the program ended.
func (s *supervisor) end() *Ending {
	sweep(s.sys, s.tree, s.order.Mark)
	var ws unix.WaitStatus
	var usage unix.Rusage
	for {
		_, err := unix.Wait4(s.pid, &ws, 0, &usage)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return failed(StepWatch, 0, err.Error())
		}
		break
	}
	e := &Ending{
		ExitCode: ws.ExitStatus(),
		CPU:      time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		MaxRSS:   int64(usage.Maxrss),
		TooMany:  s.many,
	}
	if ws.Signaled() {
		e.Signal = int(ws.Signal())
	}
	text := ""
	select {
	case text = <-s.status:
	case <-time.After(killWait): // an escaped process holds the pipe
	}
	printed, _, isReady := strings.Cut(text, ready)
	_, why, hasFailed := strings.Cut(text, failedFor)
	switch {
	case hasFailed:
		step, number, _ := strings.Cut(why, "\x00")
		errno, _ := strconv.Atoi(number)
		e.Failure = &Failure{Step: Step(step), Errno: errno, Text: syscall.Errno(errno).Error()}
	case !isReady && !s.killed: // killed before it could report is reported as killed
		printed = strings.TrimSpace(printed)
		if printed == "" && ws.Signaled() {
			printed = "ended by " + unix.SignalName(ws.Signal())
		} else if printed == "" {
			printed = "ended with status " + strconv.Itoa(ws.ExitStatus())
		}
		e.Failure = &Failure{Step: StepConfine, Text: printed}
	}
	return e
}

// living returns the members of t that are not dead.
func living(sys system, t *tree, also func(proc) bool) []proc {
	all, err := sys.list()
	if err != nil {
		return nil
	}
	var live []proc
	for _, p := range t.see(all, also) {
		if !p.zombie {
			live = append(live, p)
			sys.watch(p.pid)
		}
	}
	return live
}

// sweep kills all processes of t and those that carry the mark, and waits until they
// are gone.
// They are stopped first, so that they start nothing new while being killed.
func sweep(sys system, t *tree, mark []byte) {
	type id struct {
		pid   int
		start int64
	}
	stopped := map[id]bool{}
	stray := func(p proc) bool {
		return len(mark) > 0 && p.uid == os.Getuid() && !p.zombie && sys.marked(p.pid, mark)
	}
	pause, empty := 100*time.Microsecond, 0
	for deadline := time.Now().Add(killWait); ; {
		live := living(sys, t, stray)
		late := time.Now().After(deadline)
		fresh := false
		for _, p := range live {
			if !stopped[id{p.pid, p.start}] && !late {
				stopped[id{p.pid, p.start}], fresh = true, true
				_ = unix.Kill(p.pid, unix.SIGSTOP)
			}
		}
		if fresh {
			continue // they may have started others before they were stopped
		}
		// The program is reaped later, so the number is still its group's.
		_ = unix.Kill(-t.root, unix.SIGKILL)
		for _, p := range live {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		if len(live) > 0 {
			empty = 0
		} else if empty++; empty == 2 {
			return // a list may miss processes started while it was made
		}
		if late {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, 10*time.Millisecond)
	}
}
