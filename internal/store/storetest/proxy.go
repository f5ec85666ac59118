//go:build unix

package storetest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy sits between a client and an engine, and can fail like a network.
type Proxy struct {
	engine *Engine
	listen net.Listener

	mu    sync.Mutex
	state state
	delay time.Duration
	conns map[net.Conn]bool
	turn  chan struct{} // closed when state changes
}

type state int

const (
	passing state = iota
	cut           // connections break, and new ones are refused
	stalled       // connections stay, and nothing comes through
)

// Proxy returns a proxy in front of the engine that passes everything.
func (e *Engine) Proxy(t testing.TB) *Proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{engine: e, listen: l, conns: make(map[net.Conn]bool), turn: make(chan struct{})}
	go p.serve()
	t.Cleanup(func() {
		l.Close()
		p.Cut()
	})
	return p
}

// URL returns the engine's URL by way of the proxy.
func (p *Proxy) URL() string { return p.engine.url(p.listen.Addr().String()) }

// Cut breaks all connections and refuses new ones, until Mend.
func (p *Proxy) Cut() { p.set(cut) }

// Stall lets nothing through until Mend. Connections stay.
func (p *Proxy) Stall() { p.set(stalled) }

// Mend passes everything again.
func (p *Proxy) Mend() { p.set(passing) }

// Slow delays everything in each direction by d.
func (p *Proxy) Slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *Proxy) set(s state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	close(p.turn)
	p.turn = make(chan struct{})
	if s == cut {
		for c := range p.conns {
			c.Close()
		}
	}
}

func (p *Proxy) serve() {
	for {
		from, err := p.listen.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.engine.addr)
		if err != nil {
			from.Close()
			continue
		}
		p.mu.Lock()
		if p.state == cut {
			from.Close()
			to.Close()
			p.mu.Unlock()
			continue
		}
		p.conns[from], p.conns[to] = true, true
		p.mu.Unlock()
		go p.pass(from, to)
		go p.pass(to, from)
	}
}

func (p *Proxy) pass(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		delete(p.conns, to)
		p.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		for p.state == stalled {
			turn := p.turn
			p.mu.Unlock()
			<-turn
			p.mu.Lock()
		}
		delay := p.delay
		p.mu.Unlock()
		time.Sleep(delay)
		if _, err := to.Write(buf[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}
