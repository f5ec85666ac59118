//go:build unix

package storetest

import (
	"bytes"
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
	hold  hold
}

// A hold changes the state when a text is on its way to the engine.
type hold struct {
	text string // "" never comes
	then state
	came chan struct{} // closed when it came
}

// maxText is how long the text of a hold may be, in bytes.
const maxText = 64

type state int

const (
	passing state = iota
	cut           // connections break, and new ones are refused
	stalled       // connections stay, and nothing comes through
	mute          // the same, and only what the engine says does not come through
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

// HoldRequest lets nothing through from the moment at which a text is on its way to the
// engine, until Mend. What has the text does not reach it. came is closed at that moment.
func (p *Proxy) HoldRequest(text string) (came <-chan struct{}) { return p.holdAt(text, stalled) }

// HoldReply is HoldRequest, but what has the text reaches the engine, and what the engine
// says does not come through.
func (p *Proxy) HoldReply(text string) (came <-chan struct{}) { return p.holdAt(text, mute) }

func (p *Proxy) holdAt(text string, then state) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = hold{text, then, make(chan struct{})}
	return p.hold.came
}

// meet carries out the hold if its text is in what is on its way to the engine. The caller
// holds mu.
func (p *Proxy) meet(data []byte) {
	if p.hold.text != "" && bytes.Contains(data, []byte(p.hold.text)) {
		close(p.hold.came)
		p.state, p.hold = p.hold.then, hold{}
	}
}

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
	if s == passing {
		p.hold = hold{}
	}
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
		go p.pass(from, to, true)
		go p.pass(to, from, false)
	}
}

func (p *Proxy) pass(from, to net.Conn, toEngine bool) {
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		delete(p.conns, to)
		p.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	var recent []byte // to find a text that comes in two pieces
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if toEngine {
			recent = append(recent[max(0, len(recent)-maxText):], buf[:n]...)
			p.meet(recent)
		}
		for p.state == stalled || p.state == mute && !toEngine {
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
