package conns

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

const (
	// maxConns is how many open connections may have shown a token. If there are
	// several credentials, each may have half of them.
	maxConns = 2048
	// maxStrangers is how many further open connections may not have shown a
	// token yet. One more closes one of these.
	maxStrangers = 2048
	// maxStrangersOf is how many strangers' connections may come from one
	// address.
	maxStrangersOf = 1024
)

// Limits are how many connections may be open at a time.
type Limits struct {
	Most        int // that have shown a token
	Each        int // of these, with one credential
	Strangers   int // that have shown none yet
	StrangersOf int // of these, from one address
}

// Bounds bounds the open connections. Clients without a token cannot lock
// out those with one, and one credential cannot lock out all others. A client
// that has not shown a token makes room for the next such client, first within
// the same address. On the loopback interface all clients share one address, but
// an honest client shows its token in its first request.
type Bounds struct {
	Limits // set before the first connection

	mu        sync.Mutex
	strangers []*Conn // oldest first
	known     int
	of        map[any]int
}

// A Conn is one that a client opened.
type Conn struct {
	conn net.Conn
	from netip.Prefix
	// Guarded by the mutex of Bounds.
	owner any // who used it last; nil: a stranger
	over  bool
}

// New returns the usual bounds, for several credentials or for one.
func New(several bool) *Bounds {
	b := &Bounds{Limits: Limits{Most: maxConns, Each: maxConns, Strangers: maxStrangers, StrangersOf: maxStrangersOf}, of: make(map[any]int)}
	if several {
		b.Each /= 2
	}
	return b
}

// begin adds a new connection. If there are now too many strangers, it closes
// one of them and reports that.
func (cs *Bounds) begin(conn net.Conn) (_ *Conn, closed bool) {
	c := &Conn{conn: conn, from: network(conn.RemoteAddr())}
	cs.mu.Lock()
	victim := cs.tooMany(c.from)
	if victim != nil {
		victim.over = true
		cs.strangers = slices.DeleteFunc(cs.strangers, func(have *Conn) bool { return have == victim })
	}
	cs.strangers = append(cs.strangers, c)
	cs.mu.Unlock()
	if victim != nil {
		cut(victim.conn)
	}
	return c, victim != nil
}

// tooMany returns the stranger to close to make room for one more from a
// network; nil if there is room. The caller holds mu.
func (cs *Bounds) tooMany(from netip.Prefix) *Conn {
	count := make(map[netip.Prefix]int)
	for _, have := range cs.strangers {
		count[have.from]++
	}
	if count[from] < cs.StrangersOf {
		if len(cs.strangers) < cs.Strangers {
			return nil
		}
		for network, n := range count {
			if n > count[from] {
				from = network
			}
		}
	}
	for _, have := range cs.strangers {
		if have.from == from {
			return have
		}
	}
	return nil
}

// Identify records whose token a connection has shown, by any value
// that stands for its owner, or reports false if its
// owner has no room for one more.
func (cs *Bounds) Identify(c *Conn, owner any) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch {
	case c.over:
		return false
	case c.owner == owner:
		return true
	case cs.of[owner] >= cs.Each, c.owner == nil && cs.known >= cs.Most:
		return false
	}
	if c.owner == nil {
		cs.strangers = slices.DeleteFunc(cs.strangers, func(have *Conn) bool { return have == c })
		cs.known++
	} else {
		cs.of[c.owner]--
	}
	c.owner = owner
	cs.of[owner]++
	return true
}

// end removes a closed connection.
func (cs *Bounds) end(c *Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	if c.owner == nil {
		cs.strangers = slices.DeleteFunc(cs.strangers, func(have *Conn) bool { return have == c })
		return
	}
	cs.known--
	cs.of[c.owner]--
}

// cut closes a connection at once: TLS would first send its closing alert, and
// wait for a client that does not read.
func cut(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	_ = c.Close() // it learns that it was closed
}

// network returns where a connection comes from: an IPv4 address, or the /64 of
// an IPv6 address, which one subscriber has. Connections without an address
// share one network.
func network(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// NetworkOf returns the network that a request comes from.
func NetworkOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	return network(net.TCPAddrFromAddrPort(at))
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// Of returns a request's connection; nil if it was not accepted
// by a server that [Bounds.Watch] watches.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connectionKey{}).(*Conn)
	return c
}

// Watch bounds the connections of a server. It calls refused for each connection
// that it closes.
func (cs *Bounds) Watch(srv *http.Server, refused func(why, from string)) {
	var mu sync.Mutex
	open := make(map[net.Conn]*Conn)
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		c, closed := cs.begin(conn)
		if closed {
			refused("too many connections have shown no token, and the oldest is closed", conn.RemoteAddr().String())
		}
		mu.Lock()
		open[conn] = c
		mu.Unlock()
		return context.WithValue(ctx, connectionKey{}, c)
	}
	srv.ConnState = func(conn net.Conn, state http.ConnState) {
		if state != http.StateClosed && state != http.StateHijacked {
			return
		}
		mu.Lock()
		c := open[conn]
		delete(open, conn)
		mu.Unlock()
		if c != nil {
			cs.end(c)
		}
	}
}
