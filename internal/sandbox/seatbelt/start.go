//go:build darwin || linux

package seatbelt

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Launch says how an Order is carried out.
type Launch struct {
	Self string // absolute path of this program
	Arg  string // its first argument that makes a helper of it

	Stdin, Stdout, Stderr *os.File // the program's; a nil Stdin is at its end
}

// A Process is a program with its supervisor.
type Process struct {
	sys   system
	cmd   *exec.Cmd
	order *Order

	orders *os.File
	send   chan byte // to the goroutine that writes to orders; closed by stop
	stop   func()    // closes orders and send; more calls do nothing

	ended chan struct{} // closed when the program has ended, or the supervisor
	done  chan struct{} // closed when the supervisor has reported everything

	// Written before done is closed.
	pid    int     // of the program; 0: none was started
	ending *Ending // nil: the supervisor was lost
}

// lostWait is how long a supervisor may take to kill everything. After that it counts
// as lost.
const lostWait = killWait + 3*time.Second

// startOn carries out an order on a system. It returns an error if the supervisor could
// not be started; Reap reports all other errors. It keeps none of the files.
func startOn(sys system, l Launch, o *Order) (*Process, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	ordersIn, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ordersIn.Close()
	reports, reportsOut, err := os.Pipe()
	if err != nil {
		_ = orders.Close()
		return nil, err
	}
	defer reportsOut.Close()
	cmd := &exec.Cmd{
		Path: l.Self, Args: []string{l.Self, l.Arg, modeSupervise, l.Arg}, Dir: "/",
		Env:    []string{}, // the program's variables could change the supervisor's behaviour
		Stdout: l.Stdout, Stderr: l.Stderr,
		ExtraFiles:  []*os.File{ordersIn, reportsOut}, // fdOrders, fdReports
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if l.Stdin != nil {
		cmd.Stdin = l.Stdin
	}
	if err := cmd.Start(); err != nil {
		_ = orders.Close()
		_ = reports.Close()
		return nil, err
	}
	p := &Process{
		sys: sys, cmd: cmd, order: o, orders: orders,
		send: make(chan byte, 1), ended: make(chan struct{}), done: make(chan struct{}),
	}
	p.stop = sync.OnceFunc(func() {
		_ = orders.Close() // ends a write that is under way
		close(p.send)
	})
	go p.write(append(line, '\n'))
	go p.read(reports)
	return p, nil
}

// write sends the order, and then the requests of Terminate.
func (p *Process) write(order []byte) {
	_, err := p.orders.Write(order)
	for b := range p.send {
		if err == nil {
			_, err = p.orders.Write([]byte{b})
		}
	}
}

// read reads the supervisor's reports.
func (p *Process) read(reports *os.File) {
	defer close(p.done)
	defer reports.Close()
	ended := sync.OnceFunc(func() { close(p.ended) })
	defer ended()
	in := bufio.NewReader(io.LimitReader(reports, 1<<20))
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r report
		if json.Unmarshal(line, &r) != nil {
			return
		}
		switch {
		case r.PID > 0:
			p.pid = r.PID
		case r.Exited:
			ended()
		case r.Ending != nil:
			p.ending = r.Ending
			return
		}
	}
}

// Ended returns a channel that is closed when the program itself has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Terminate asks all processes to end. Do not call it after Kill or Reap.
func (p *Process) Terminate() {
	select {
	case p.send <- orderTerminate:
	default: // already requested
	}
}

// Kill kills all processes.
func (p *Process) Kill() {
	p.stop()
	time.AfterFunc(lostWait, func() {
		select {
		case <-p.done:
		default:
			_ = p.cmd.Process.Kill() // its end closes reports
		}
	})
}

// Reap kills the processes that are left, waits until they are gone, and returns how the
// order ended. Call it when the channel of Ended is closed.
func (p *Process) Reap() Ending {
	lost := time.NewTimer(lostWait)
	defer lost.Stop()
	select {
	case <-p.done:
	case <-lost.C:
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	p.stop()
	err := p.cmd.Wait()
	if p.ending != nil {
		return *p.ending
	}
	// The supervisor may have been killed from outside, without the run's processes.
	if p.pid > 1 {
		sweep(p.sys, newTree(p.pid, os.Getpid(), unix.Getpgrp()), p.order.Mark)
	}
	if p.pid == 0 {
		return *failed(StepHelper, 0, lostText(err))
	}
	return *failed(StepWatch, 0, lostText(err))
}

func lostText(err error) string {
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		return "the supervisor ended with " + strings.TrimSpace(ee.Error())
	}
	return "the supervisor ended too early"
}
