package approvals

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
)

// listenOn listens on an address, or when it is empty on one that nobody can have
// visited: what a browser has once stored for an address and port, another
// program's worker above all, it uses for whoever serves there later.
func listenOn(address string) (net.Listener, error) {
	if address != "" {
		return net.Listen("tcp", address)
	}
	// Linux and Windows have the whole block on the loopback interface, other
	// systems 127.0.0.1 alone.
	l, err := net.Listen("tcp", strangeAddress())
	if err != nil {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return l, nil
}

// strangeAddress is one of 16 million of 127.0.0.0/8, with any port. Those that
// begin with 127.0 are left out: systems use some.
func strangeAddress() string {
	var b [3]byte
	for b[0] == 0 || b[2] == 0 || b[2] == 255 {
		_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	}
	return fmt.Sprintf("127.%d.%d.%d:0", b[0], b[1], b[2])
}

// A limitListener has a bounded number of connections. When there are too many,
// the oldest one of somebody who has shown no key makes room; without such a
// one, new ones wait.
type limitListener struct {
	net.Listener
	most int

	mu      sync.Mutex
	changed sync.Cond    // of the fields below
	open    []*limitConn // oldest first
	closed  bool
}

// limited is l with at most so many connections.
func limited(l net.Listener, most int) *limitListener {
	few := &limitListener{Listener: l, most: most}
	few.changed.L = &few.mu
	return few
}

func (l *limitListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.open) >= l.most && !l.closed {
		i := slices.IndexFunc(l.open, func(c *limitConn) bool { return !c.known })
		if i < 0 {
			l.changed.Wait()
			continue
		}
		_ = l.open[i].Conn.Close()
		l.open = slices.Delete(l.open, i, i+1)
	}
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	one := &limitConn{Conn: c, of: l}
	l.open = append(l.open, one)
	return one, nil
}

func (l *limitListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

type limitConn struct {
	net.Conn
	of    *limitListener
	known bool // of.mu guards it
}

func (c *limitConn) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
		c.of.changed.Broadcast()
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite is what net/http ends a connection with whose request it has not
// read to the end: without it the answer could be lost.
func (c *limitConn) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// keepConn says that whoever made the request has shown a key: the connection
// makes room for nobody.
func keepConn(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitConn); ok {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.known = true
	}
}
