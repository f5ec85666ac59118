package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
)

// maxAhead is how many bytes are taken from a client while its request is under
// way. Clients send the next one after the answer; who sends more is cut off.
const maxAhead = 16 << 10

// errAhead is what reading from such a client gives.
var errAhead = errors.New("the client sent too much while its request was under way")

// attentive is a listener whose connections notice that the client is gone while
// its request is under way. The server of net/http stops looking once it has read
// a byte behind the request, as some clients send a line break there, and the
// call would go on for nobody.
type attentive struct{ net.Listener }

func (l attentive) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newAttended(c), nil
}

// attended is a connection that reads ahead while a request is under way, below
// TLS: what comes waits for whoever reads next, and the end is told at once.
// Deadlines and Close are the inner connection's, and end reading ahead as well.
type attended struct {
	net.Conn

	mu      sync.Mutex
	looked  sync.Cond // of mu: looking became false, or there is something ahead
	reading bool      // Read waits for the client
	looking bool      // look does; Read waits for look then
	ahead   []byte    // what look read
	err     error     // and how that ended
	gone    func()    // called once for the request under way; nil: there is none
}

func newAttended(c net.Conn) *attended {
	a := &attended{Conn: c}
	a.looked.L = &a.mu
	return a
}

// Read is called by one goroutine at a time.
func (a *attended) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.looking && len(a.ahead) == 0 {
		a.looked.Wait()
	}
	switch {
	case len(a.ahead) > 0:
		n := copy(p, a.ahead)
		if a.ahead = a.ahead[n:]; len(a.ahead) == 0 {
			a.ahead = nil
		}
		return n, nil
	case a.err != nil:
		return 0, a.err
	}
	a.reading = true
	a.mu.Unlock()
	n, err := a.Conn.Read(p)
	a.mu.Lock()
	a.reading = false
	if n > 0 && err == nil && a.gone != nil {
		a.lookOn()
	}
	return n, err
}

// lookOn starts look. The caller holds mu.
func (a *attended) lookOn() {
	a.looking = true
	go a.look()
}

// look reads ahead until no request is under way any more and something came, a
// deadline passed, or the client is gone.
func (a *attended) look() {
	b := make([]byte, 4<<10)
	for {
		n, err := a.Conn.Read(b)
		if a.saw(b[:n], err) {
			return
		}
	}
}

// saw takes what look read, and reports whether that was the last of it.
func (a *attended) saw(b []byte, err error) (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.looked.Broadcast()
	a.ahead = append(a.ahead, b...)
	late := errors.Is(err, os.ErrDeadlineExceeded) // which Read meets itself
	switch {
	case err != nil && !late:
		a.err = err
		a.leave()
	case len(a.ahead) > maxAhead && a.gone != nil:
		a.err = errAhead
		a.leave()
	}
	a.looking = err == nil && a.gone != nil
	return !a.looking
}

// leave tells the request that its client is gone: neither its answer nor what was
// sent behind it is of use to anybody. The caller holds mu.
func (a *attended) leave() {
	if a.gone == nil {
		return
	}
	a.gone()
	a.gone, a.ahead = nil, nil
	_ = a.Conn.Close()
}

// attend has gone called when the client goes away, until stop is called. All of
// the request has been read.
func (a *attended) attend(gone func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = gone
	switch {
	case a.err != nil:
		a.leave()
	case !a.reading && !a.looking:
		a.lookOn()
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.gone = nil
	}
}

// CloseWrite is how net/http has a client get an answer before the connection is
// closed with what it sent unread.
func (a *attended) CloseWrite() error {
	if c, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// attend returns a request, all of which has been read, whose context ends when
// its client goes away, until leave. On a connection that [Server.Serve] did not
// accept it ends when net/http notices.
func attend(r *http.Request) (_ *http.Request, leave func()) {
	c := connectionOf(r.Context())
	if c == nil {
		return r, func() {}
	}
	inner := c.conn
	if secure, ok := inner.(*tls.Conn); ok {
		inner = secure.NetConn()
	}
	a, ok := inner.(*attended)
	if !ok {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := a.attend(cancel)
	return r.WithContext(ctx), func() {
		stop()
		cancel()
	}
}
