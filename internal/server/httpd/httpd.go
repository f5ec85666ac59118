package httpd

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// A Credential lets its holder use the server over HTTP.
type Credential struct {
	// Token is what the holder sends. It is never logged or shown.
	Token string
	// Person is whose it is, as questions and the audit log have it; empty:
	// nobody in particular.
	Person string
}

// Options are what serving over HTTP takes beside a host. Credentials is required.
type Options struct {
	Credentials []Credential
	// Local says that no other machine reaches the server: a token without a name
	// is then the user's own.
	Local bool
	// PublicURL is how clients reach the server when not by an address of this
	// machine, as "https://packs.example.com".
	PublicURL string
	// Issuer is the authorization server that clients are told to get a token
	// from; empty names none. The server itself only knows Credentials.
	Issuer string
	// Idle is how long a chat lasts that nobody uses; 0 is one hour.
	Idle time.Duration
}

// A Server serves clients over HTTP: MCP's Streamable HTTP at /mcp, the older
// HTTP+SSE at /sse and /message, /healthz, and, with an issuer, the metadata of
// RFC 9728. Make one with [New]; it is an [http.Handler].
//
// It does not use the library's own transports, which bound no body, let one
// caller cancel another's call, accept session ids that nobody made, and lose
// notifications.
//
// A request needs a token of a credential, and a session belongs to the
// credential that made it. A call whose client goes away is cancelled, in both
// protocol eras: its answer could reach nobody.
type Server struct {
	*core
	*guard
	conns    *connections
	sessions *sessions
	sse      *sse

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup // requests, and sweeping
}

// New returns what serves a host over HTTP. The caller closes it.
func New(host Host, o Options) (*Server, error) {
	if len(o.Credentials) == 0 {
		return nil, errors.New("serving over HTTP: a token is required")
	}
	if shared := host.SharedWorkspace(); shared != "" && len(o.Credentials) > 1 {
		return nil, fmt.Errorf("serving over HTTP: the workspace %q is one for all, and people with tokens of their own do not share files; leave it out", shared)
	}
	in := newCore(host, o.Idle)
	who := &guard{core: in, issuer: o.Issuer}
	h := &Server{
		core: in, guard: who, conns: newConnections(len(o.Credentials)),
		sessions: &sessions{core: in, byID: make(map[string]*session)},
		sse:      &sse{core: in, guard: who, byID: make(map[string]*sseConn)},
	}
	if o.PublicURL != "" {
		u, err := parsePublicURL(o.PublicURL)
		if err != nil {
			return nil, fmt.Errorf("serving over HTTP: %w", err)
		}
		h.public = u
	}
	seen := make(map[[sha256.Size]byte]bool)
	for _, of := range o.Credentials {
		sum := sha256.Sum256([]byte(of.Token))
		switch {
		case of.Token == "":
			return nil, errors.New("serving over HTTP: a token is empty")
		case seen[sum]:
			return nil, errors.New("serving over HTTP: two people have the same token")
		}
		seen[sum] = true
		c := newCaller(of.Person, sum, host.MaxMessage())
		if o.Local && (h.public == nil || isLoopback(h.public.Hostname())) {
			c.origin = call.OriginMachine
		}
		h.callers = append(h.callers, c)
	}
	h.wg.Go(h.sweep)
	return h, nil
}

// ServeHTTP serves one request.
func (h *Server) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	w := newResponseWriter(plain)
	defer w.end(h.reads)
	// Before anything is known of the client, and in the place of what the request
	// before it on this connection left: whoever does not send a body, or does not
	// read an answer, does not hold the connection for longer. What may last
	// longer sets its own.
	_ = w.SetReadDeadline(time.Now().Add(h.sends))
	_ = w.SetWriteDeadline(time.Now().Add(h.reads))
	if !h.enter() {
		refuse(w, http.StatusServiceUnavailable, "the server is ending")
		return
	}
	defer h.wg.Done()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if len(r.TransferEncoding) > 0 {
		// It may have had a length as well, which is gone from the headers; then what
		// a proxy takes for another request might follow.
		w.Header().Set("Connection", "close")
	}
	if why := h.foreign(r); why != "" {
		h.refused(why, r.RemoteAddr)
		refuse(w, http.StatusForbidden, why)
		return
	}
	// As it was written: a proxy that lets only some paths pass sees "/%6dcp" too.
	switch r.URL.EscapedPath() {
	case pathHealth:
		h.health(w, r)
		return
	case pathMetadata, pathMetadata + pathMCP:
		if h.issuer != "" {
			h.metadata(w, r)
			return
		}
	}
	c := h.authenticate(r)
	if c == nil {
		h.unauthorized(w, r)
		return
	}
	if conn := connectionOf(r.Context()); conn != nil && !h.conns.identify(conn, c) {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "too many connections are open; close some")
		return
	}
	if name := doubled(r); name != "" {
		refuse(w, http.StatusBadRequest, "the header "+name+" is there more than once")
		return
	}
	switch r.URL.EscapedPath() {
	case pathMCP:
		h.mcp(w, r, c)
	case pathSSE:
		h.sse.open(w, r, c)
	case pathMessage:
		h.sse.message(w, r, c)
	default:
		refuse(w, http.StatusNotFound, "there is nothing here; MCP is at "+pathMCP)
	}
}

// enter begins a request, unless the server ends.
func (h *Server) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Add(1)
	return true
}

// mcp serves Streamable HTTP.
func (h *Server) mcp(w http.ResponseWriter, r *http.Request, c *caller) {
	switch r.Method {
	case http.MethodPost:
		h.sessions.post(w, r, c)
	case http.MethodGet:
		h.sessions.get(w, r, c)
	case http.MethodDelete:
		h.sessions.delete(w, r, c)
	default:
		notAllowed(w, "GET, POST, DELETE")
	}
}

// health says that the server runs, and nothing else.
func (h *Server) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Connection", "close")
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// Close ends every chat and stream, kills what programs run, and returns when
// all of it is done: at the latest a few seconds after the calls were cancelled.
func (h *Server) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end(wire.ErrEnded)
	h.wg.Wait()
	h.sessions.endAll(func(*session) bool { return true })
	for _, c := range h.callers {
		if ch := c.takeChat(); ch != nil {
			ch.Close()
		}
	}
}

// sweep ends what nobody uses any more, until the server ends.
func (h *Server) sweep() {
	t := time.NewTicker(max(h.idle/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			h.expire(now)
		case <-h.ending.Done():
			return
		}
	}
}

// expire ends the chats that were not used since idle before now.
func (h *Server) expire(now time.Time) {
	before := now.Add(-h.idle)
	h.sessions.expire(before)
	for _, c := range h.callers {
		if ch := c.idleChat(before); ch != nil {
			ch.Close()
		}
	}
}
