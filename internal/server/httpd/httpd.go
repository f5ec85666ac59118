package httpd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The paths that are served over HTTP.
const (
	pathMCP      = "/mcp"
	pathSSE      = "/sse"
	pathMessage  = "/message"
	pathHealth   = "/healthz"
	pathMetadata = "/.well-known/oauth-protected-resource" // RFC 9728
)

// A Credential lets its holder use the server over HTTP.
type Credential struct {
	// Token is what the holder sends. It is never logged or shown.
	Token string
	// Person is whose it is, as questions and the audit log have it; empty:
	// nobody in particular.
	Person string
}

// A Host answers the messages that come over HTTP.
type Host interface {
	wire.Host
	// SharedWorkspace is the one workspace of every chat; empty when each has its own.
	// People with credentials of their own do not share one.
	SharedWorkspace() string
	// OverHTTP notes in a request's context how it came.
	OverHTTP(context.Context, http.Header) context.Context
}

// Options are what serving over HTTP takes beside a server. Credentials is
// required.
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
	host    Host
	logger  *slog.Logger
	callers []*caller
	public  *url.URL // nil: none
	issuer  string
	idle    time.Duration
	beat    time.Duration // between signs of life on a stream
	reads   time.Duration // what a client gets to read a piece of an answer
	sends   time.Duration // what it gets to send a message
	heads   time.Duration // what it gets to send the head of a request, and to agree on TLS
	rate    int           // bytes a second that it has to read on the whole
	leaves  time.Duration // what a call that was told to end gets before it is left behind
	conns   *connections
	spare   sparing // of what is logged about requests without a token

	// ending is done when the server ends, with wire.ErrEnded as its cause.
	ending context.Context
	end    context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session // :: id → session of the older era
	onSSE    map[string]*sseConn // :: id → connection of HTTP+SSE
	wg       sync.WaitGroup      // requests, and sweeping
}

// keepAlive is how often a stream has a sign of life when nothing else is said
// on it: proxies close what is silent, and a client that is gone is noticed.
const keepAlive = 15 * time.Second

// New returns what serves a host over HTTP. The caller closes it.
func New(host Host, o Options) (*Server, error) {
	if len(o.Credentials) == 0 {
		return nil, errors.New("serving over HTTP: a token is required")
	}
	if shared := host.SharedWorkspace(); shared != "" && len(o.Credentials) > 1 {
		return nil, fmt.Errorf("serving over HTTP: the workspace %q is one for all, and people with tokens of their own do not share files; leave it out", shared)
	}
	h := &Server{
		host: host, logger: host.Logger(), issuer: o.Issuer, idle: o.Idle, beat: keepAlive, reads: readTime, sends: sendTime, heads: headerTime, rate: slowest, leaves: wire.EndTime,
		conns:    newConnections(len(o.Credentials)),
		sessions: make(map[string]*session), onSSE: make(map[string]*sseConn),
	}
	if h.idle <= 0 {
		h.idle = time.Hour
	}
	if o.PublicURL != "" {
		u, err := parsePublicURL(o.PublicURL)
		if err != nil {
			return nil, fmt.Errorf("serving over HTTP: %w", err)
		}
		h.public = u
	}
	seen := make(map[[sha256.Size]byte]bool)
	for _, c := range o.Credentials {
		sum := sha256.Sum256([]byte(c.Token))
		switch {
		case c.Token == "":
			return nil, errors.New("serving over HTTP: a token is empty")
		case seen[sum]:
			return nil, errors.New("serving over HTTP: two people have the same token")
		}
		seen[sum] = true
		who := newCaller(c.Person, sum, host.MaxMessage())
		if o.Local && (h.public == nil || isLoopback(h.public.Hostname())) {
			who.origin = gate.OriginMachine
		}
		h.callers = append(h.callers, who)
	}
	h.ending, h.end = context.WithCancelCause(context.Background())
	h.wg.Go(h.sweep)
	return h, nil
}

// parsePublicURL reads the URL that clients reach a server by: http or https, a
// host, and perhaps a path that a proxy takes off.
func parsePublicURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return nil, fmt.Errorf("the public URL %q is not a URL such as https://packs.example.com", text)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
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
		h.sse(w, r, c)
	case pathMessage:
		h.message(w, r, c)
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
		h.post(w, r, c)
	case http.MethodGet:
		h.get(w, r, c)
	case http.MethodDelete:
		h.delete(w, r, c)
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

// metadata says where a client gets a token.
func (h *Server) metadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Connection", "close")
	writeJSON(w, http.StatusOK, map[string]any{
		"resource":                 h.url(r) + pathMCP,
		"authorization_servers":    []string{h.issuer},
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "packs-mcp",
	})
}

// url is how the client reaches the server.
func (h *Server) url(r *http.Request) string {
	switch {
	case h.public != nil:
		return h.public.String()
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host // which was checked
}

// Close ends every chat and stream, kills what programs run, and returns when
// all of it is done: at the latest a few seconds after the calls were cancelled.
func (h *Server) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end(wire.ErrEnded)
	h.wg.Wait()
	h.mu.Lock()
	all := h.sessions
	h.sessions = make(map[string]*session)
	h.mu.Unlock()
	for _, s := range all {
		h.endSession(s)
	}
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
	var gone []*session
	h.mu.Lock()
	for id, s := range h.sessions {
		if s.idleSince(before) {
			gone = append(gone, s)
			delete(h.sessions, id)
		}
	}
	h.mu.Unlock()
	for _, s := range gone {
		h.endSession(s)
	}
	for _, c := range h.callers {
		if ch := c.idleChat(before); ch != nil {
			ch.Close()
		}
	}
}
