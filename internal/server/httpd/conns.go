package httpd

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

// connections bounds the open connections. Clients without a token cannot lock
// out those with one, and one credential cannot lock out all others. A client
// that has not shown a token makes room for the next such client, first within
// the same address. On the loopback interface all clients share one address, but
// an honest client shows its token in its first request.
type connections struct {
	most, strangersMost, strangersOf int // see maxConns, maxStrangers and maxStrangersOf
	each                             int // of one credential

	mu        sync.Mutex
	strangers []*connection // oldest first
	known     int
	of        map[*caller]int
}

// A connection is one that a client opened.
type connection struct {
	conn net.Conn
	from netip.Prefix
	// Guarded by the mutex of connections.
	owner *caller // who used it last; nil: a stranger
	over  bool
}

func newConnections(callers int) *connections {
	c := &connections{most: maxConns, each: maxConns, strangersMost: maxStrangers, strangersOf: maxStrangersOf, of: make(map[*caller]int)}
	if callers > 1 {
		c.each /= 2
	}
	return c
}

// begin adds a new connection. If there are now too many strangers, it closes
// one of them and reports that.
func (cs *connections) begin(conn net.Conn) (_ *connection, closed bool) {
	c := &connection{conn: conn, from: network(conn.RemoteAddr())}
	cs.mu.Lock()
	victim := cs.tooMany(c.from)
	if victim != nil {
		victim.over = true
		cs.strangers = slices.DeleteFunc(cs.strangers, func(have *connection) bool { return have == victim })
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
func (cs *connections) tooMany(from netip.Prefix) *connection {
	count := make(map[netip.Prefix]int)
	for _, have := range cs.strangers {
		count[have.from]++
	}
	if count[from] < cs.strangersOf {
		if len(cs.strangers) < cs.strangersMost {
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

// identify records whose token a connection has shown, or reports false if its
// owner has no room for one more.
func (cs *connections) identify(c *connection, owner *caller) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch {
	case c.over:
		return false
	case c.owner == owner:
		return true
	case cs.of[owner] >= cs.each, c.owner == nil && cs.known >= cs.most:
		return false
	}
	if c.owner == nil {
		cs.strangers = slices.DeleteFunc(cs.strangers, func(have *connection) bool { return have == c })
		cs.known++
	} else {
		cs.of[c.owner]--
	}
	c.owner = owner
	cs.of[owner]++
	return true
}

// end removes a closed connection.
func (cs *connections) end(c *connection) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	if c.owner == nil {
		cs.strangers = slices.DeleteFunc(cs.strangers, func(have *connection) bool { return have == c })
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

// networkOf returns the network that a request comes from.
func networkOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	return network(net.TCPAddrFromAddrPort(at))
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// connectionOf returns a request's connection; nil if it was not accepted
// through [Server.Serve].
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// watch bounds the connections of a server. It calls refused for each connection
// that it closes.
func (cs *connections) watch(srv *http.Server, refused func(why, from string)) {
	var mu sync.Mutex
	open := make(map[net.Conn]*connection)
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
