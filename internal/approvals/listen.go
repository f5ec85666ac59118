package approvals

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// listenOn listens on an address or, if it is empty, on one that no browser can
// have visited. Whatever a browser has stored for an address and port, above all
// another program's service worker, it applies to any later server there.
func listenOn(address string) (net.Listener, error) {
	if address != "" {
		return net.Listen("tcp", address)
	}
	// Linux and Windows have the whole block on the loopback interface; other
	// systems have only 127.0.0.1.
	l, err := net.Listen("tcp", strangeAddress())
	if err != nil {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return l, nil
}

// strangeAddress returns a random address in 127.0.0.0/8, one of 16 million,
// with any port. It leaves out 127.0.0.0/16, since systems use some of those.
func strangeAddress() string {
	var b [3]byte
	for b[0] == 0 || b[2] == 0 || b[2] == 255 {
		_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	}
	return fmt.Sprintf("127.%d.%d.%d:0", b[0], b[1], b[2])
}

// A strangerListener bounds the connections of strangers: clients that have not
// shown a key. Over the bound, a new connection replaces the oldest, first among
// those from the same remote address, then among all. A client that sends its
// request at once is answered long before it is the oldest. Connections that
// have shown a key are not strangers, so a stranger cannot cause them to close.
//
// Bounding by address alone protects nobody: a program can connect from any
// address in 127.0.0.0/8, and by default all programs of a machine have the same
// one.
type strangerListener struct {
	net.Listener
	most     int // strangers
	each     int // strangers from one remote address
	mostKeys int // connections that have shown a key; more stay strangers

	mu        sync.Mutex
	strangers []*strangerConn // oldest first
	keys      int             // connections that have shown a key
	closed    bool
}

func (l *strangerListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &strangerConn{Conn: inner, of: l, from: addressOf(inner)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = inner.Close()
		return nil, net.ErrClosed
	}
	fromHere := 0
	for _, have := range l.strangers {
		if have.from == c.from {
			fromHere++
		}
	}
	switch {
	case fromHere >= l.each:
		l.drop(slices.IndexFunc(l.strangers, func(have *strangerConn) bool { return have.from == c.from }))
	case len(l.strangers) >= l.most:
		l.drop(0)
	}
	l.strangers = append(l.strangers, c)
	return c, nil
}

// drop closes a stranger's connection. The caller holds mu.
func (l *strangerListener) drop(i int) {
	_ = l.strangers[i].Conn.Close()
	l.strangers = slices.Delete(l.strangers, i, i+1)
}

func (l *strangerListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.Listener.Close()
}

func addressOf(c net.Conn) netip.Addr {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// A strangerConn is a connection of a [strangerListener].
type strangerConn struct {
	net.Conn
	of   *strangerListener
	from netip.Addr
	key  bool // it has shown a key; guarded by of.mu
}

func (c *strangerConn) Close() error {
	c.of.mu.Lock()
	if c.key {
		c.key = false
		c.of.keys--
	} else if i := slices.Index(c.of.strangers, c); i >= 0 {
		c.of.strangers = slices.Delete(c.of.strangers, i, i+1)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite is called by net/http to end a connection whose request it has not
// read to the end. Without it the response could be lost.
func (c *strangerConn) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// connKey is the context key of a request's connection.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// keepConn records that the request's connection has shown a key.
func keepConn(r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*strangerConn)
	if !ok {
		return
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.strangers, c); i >= 0 && l.keys < l.mostKeys {
		l.strangers = slices.Delete(l.strangers, i, i+1)
		c.key = true
		l.keys++
	}
}
