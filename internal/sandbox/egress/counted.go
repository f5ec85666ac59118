package egress

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A counted is a connection to a host. Closing it records it.
type counted struct {
	net.Conn
	sent, received atomic.Int64
	closing        func() error // closes and records it, once
}

// keep counts a connection, which [Proxy.Close] closes if nobody else does.
func (p *Proxy) keep(h hosts.Host, at netip.Addr, conn net.Conn) (*counted, error) {
	c := &counted{Conn: conn}
	c.closing = sync.OnceValue(func() error {
		err := conn.Close()
		p.note(sandbox.Contact{Host: h.String(), Address: at.Unmap().String(), Sent: c.sent.Load(), Received: c.received.Load()})
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
		return err
	})
	p.mu.Lock()
	closed := p.closed
	p.open[c] = struct{}{}
	p.mu.Unlock()
	if closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

func (c *counted) Close() error { return c.closing() }

// closeWrite tells the other side that no more data follows.
func closeWrite(c net.Conn) {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite()
	}
}
