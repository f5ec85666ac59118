package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
)

// maxAhead is how many bytes are read ahead from a client during its request.
// Clients send the next request after the response; a client that sends more is
// cut off.
const maxAhead = 16 << 10

// errAhead is the error of reading from a client that sent more than maxAhead.
var errAhead = errors.New("the client sent too much while its request was under way")

// attentive is a listener whose connections notice when the client leaves during
// its request. The server of net/http stops watching once it has read a byte
// after the request, and some clients send a line break there. The call would
// then go on with no client.
type attentive struct{ net.Listener }

// Attentive returns a listener for [Bounds.Watch] whose connections notice when the
// client leaves during its request: see [Attend].
func Attentive(l net.Listener) net.Listener { return attentive{l} }

func (l attentive) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newAttended(c), nil
}

// attended is a connection, below TLS, that reads ahead during a request: bytes
// are kept for the next Read, and the end of the connection is reported at once.
// Deadlines and Close are the inner connection's, and also end reading ahead.
type attended struct {
	net.Conn

	mu      sync.Mutex
	looked  sync.Cond // of mu: looking became false, or ahead has bytes
	reading bool      // Read waits for the client
	looking bool      // look waits for the client, and Read waits for look
	ahead   []byte    // what look read
	err     error     // and how that ended
	gone    func()    // called once for the current request; nil: none
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

// look reads ahead until the request is over and bytes came, a deadline passed,
// or the client is gone.
func (a *attended) look() {
	b := make([]byte, 4<<10)
	for {
		n, err := a.Conn.Read(b)
		if a.saw(b[:n], err) {
			return
		}
	}
}

// saw takes what look read, and reports whether look should stop.
func (a *attended) saw(b []byte, err error) (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.looked.Broadcast()
	a.ahead = append(a.ahead, b...)
	late := errors.Is(err, os.ErrDeadlineExceeded) // Read meets this error itself
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

// leave tells the request that its client is gone. Nobody needs its answer or
// the bytes sent after it. The caller holds mu.
func (a *attended) leave() {
	if a.gone == nil {
		return
	}
	a.gone()
	a.gone, a.ahead = nil, nil
	_ = a.Conn.Close()
}

// attend arranges for gone to be called when the client leaves, until stop is
// called. The whole request must have been read.
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

// CloseWrite is called by net/http so that a client gets its response before the
// connection is closed with unread data.
func (a *attended) CloseWrite() error {
	if c, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Attend returns a copy of r, which must have been read completely, whose
// context ends when its client leaves, until leave is called. On a connection
// that an [Attentive] listener did not accept, it ends when net/http notices.
func Attend(r *http.Request) (_ *http.Request, leave func()) {
	c := Of(r.Context())
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
