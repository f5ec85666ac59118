package httpd

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/busy"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/conns"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/guard"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// A Credential lets its holder use the server over HTTP.
type Credential = guard.Credential

// How many requests are worked on, unless [Options] say something else.
const (
	DefaultCalls     = 4096
	DefaultCallsEach = 1024
)

// Options configure a [Server]. Credentials or Tokens is required.
type Options struct {
	Credentials []Credential
	// Tokens verifies the tokens that are not in Credentials; nil: there are no
	// others.
	Tokens *oidc.Verifier
	// Local says that no other machine can reach the server: a token without a
	// name is then the user's own.
	Local bool
	// PublicURL is the URL by which clients reach the server if not by an
	// address of this machine, as in "https://packs.example.com".
	PublicURL string
	// Issuer is the authorization server from which clients are told to get a
	// token; empty names none.
	Issuer string
	// Scopes are what clients are told to ask the issuer for.
	Scopes []string
	// Client is the name under which the issuer knows the program with which people
	// answer; empty names none.
	Client string
	// Approvals answers a person's requests below /approvals; nil: that path does not
	// exist. The request's context ends with the person's token and with the server.
	Approvals func(http.ResponseWriter, *http.Request, guard.Person)
	// Ready says in a word why the server cannot do its work now; empty: it can. If nil,
	// it always can.
	Ready func(context.Context) (why string)
	// Calls is how many requests are worked on at the same time, and CallsOf how many of
	// these may be of one person, and of the people of a group together; 0 is
	// [DefaultCalls] and [DefaultCallsEach].
	Calls   int
	CallsOf quota.Limits
	// Drain is how long what the server works on may go on when it is to end.
	Drain time.Duration
	// Page answers people's browsers below /approvals; nil: there is no page there. It
	// finds out whose a request is, and calls enter before it does what the person asks.
	Page func(w http.ResponseWriter, r *http.Request, enter Enter)
	// Idle is how long an unused chat lasts; 0 is one hour.
	Idle time.Duration
}

// Enter lets a request be a person's. It returns the request to go on with, whose context
// ends with the person's token and with the server, and the person, by the name that their
// calls have. leave is nil if the request was refused; else it ends the request.
type Enter func(guard.Person) (r *http.Request, who guard.Person, leave func())

// A Server serves clients over HTTP: MCP's Streamable HTTP at /mcp, the older
// HTTP+SSE at /sse and /message, /healthz, /readyz, and, with an issuer, the metadata of
// RFC 9728. Create one with [New]; it is an [http.Handler].
//
// It does not use the library's own transports, which do not bound bodies, let
// one caller cancel another's call, accept made-up session ids, and lose
// notifications.
//
// A request needs a token of a credential, and a session belongs to the
// credential that made it. A call whose client leaves is cancelled, in both
// protocol eras: nobody could receive its answer.
type Server struct {
	*core
	guard    *guard.Guard
	conns    *conns.Bounds
	fixed    map[string]*caller // :: a person's key → who has a fixed token
	callers  []*caller          // the same, in the order of the options
	people   *people            // nil: only fixed tokens are accepted
	approves func(http.ResponseWriter, *http.Request, guard.Person)
	page     func(http.ResponseWriter, *http.Request, Enter)
	sessions *sessions
	sse      *sse
	ready    *busy.Readiness
	drains   time.Duration

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup // requests, and sweeping
}

// New returns a [Server] for a host. The caller closes it.
func New(host Host, o Options) (*Server, error) {
	several := len(o.Credentials) > 1 || o.Tokens != nil
	if shared := host.SharedWorkspace(); shared != "" && several {
		return nil, fmt.Errorf("serving over HTTP: the workspace %q is one for all, and people with tokens of their own do not share files; leave it out", shared)
	}
	in := newCore(host, o.Idle)
	o.CallsOf.Each = cmp.Or(o.CallsOf.Each, DefaultCallsEach)
	in.busy = busy.New(cmp.Or(o.Calls, DefaultCalls), o.CallsOf)
	who, err := guard.New(guard.Options{
		Credentials: o.Credentials, Tokens: o.Tokens, Local: o.Local, PublicURL: o.PublicURL, Issuer: o.Issuer, Scopes: o.Scopes, Client: o.Client, Logger: in.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("serving over HTTP: %w", err)
	}
	h := &Server{
		core: in, ready: busy.NewReadiness(o.Ready), drains: o.Drain, guard: who, conns: conns.New(several), approves: o.Approvals, page: o.Page, fixed: make(map[string]*caller),
		sessions: &sessions{core: in, byID: make(map[string]*session)},
		sse:      &sse{core: in, guard: who, byID: make(map[string]*sseConn)},
	}
	if o.Tokens != nil {
		h.people = &people{limit: host.MaxMessage(), of: make(map[string]*caller)}
	}
	for _, p := range who.Fixed() {
		c := newCaller(p, host.MaxMessage())
		h.fixed[p.Key] = c
		h.callers = append(h.callers, c)
	}
	h.wg.Go(h.sweep)
	return h, nil
}

// ServeHTTP serves one request.
func (h *Server) ServeHTTP(plain http.ResponseWriter, r *http.Request) {
	w := reply.NewWriter(plain)
	defer w.End(h.reads)
	// Set deadlines before anything is known about the client, replacing those
	// of the previous request on this connection: a client that does not send a
	// body, or does not read a response, holds the connection no longer.
	// Requests that may last longer set their own.
	_ = w.SetReadDeadline(time.Now().Add(h.sends))
	_ = w.SetWriteDeadline(time.Now().Add(h.reads))
	if !h.enter() {
		reply.Refuse(w, http.StatusServiceUnavailable, "the server is ending")
		return
	}
	defer h.wg.Done()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if len(r.TransferEncoding) > 0 {
		// The request may also have had a length, which net/http has removed;
		// then bytes that a proxy takes for another request might follow.
		w.Header().Set("Connection", "close")
	}
	if why := h.guard.Foreign(r); why != "" {
		h.guard.Refused(why, r.RemoteAddr)
		reply.Refuse(w, http.StatusForbidden, why)
		return
	}
	// Compare the path as it was written: a proxy that passes only some paths
	// also sees "/%6dcp".
	switch r.URL.EscapedPath() {
	case pathHealth:
		h.health(w, r)
		return
	case pathReady:
		h.answerReady(w, r)
		return
	case guard.PathMetadata, guard.PathMetadataMCP:
		if h.guard.HasIssuer() {
			h.guard.Metadata(w, r)
			return
		}
	}
	if h.page != nil && ofPage(r) {
		if name := doubled(r); name != "" {
			reply.Refuse(w, http.StatusBadRequest, "the header "+name+" is there more than once")
			return
		}
		h.page(w, r, func(who guard.Person) (*http.Request, guard.Person, func()) { return h.enterPage(w, r, who) })
		return
	}
	who, err := h.guard.Authenticate(r)
	if err != nil {
		h.guard.Unauthorized(w, r, err)
		return
	}
	c, leave := h.admit(w, r, who)
	if leave == nil {
		return
	}
	defer leave()
	r = withPerson(r, who)
	if name := doubled(r); name != "" {
		reply.Refuse(w, http.StatusBadRequest, "the header "+name+" is there more than once")
		return
	}
	switch path := r.URL.EscapedPath(); path {
	case pathMCP:
		h.mcp(w, r, c)
	case pathSSE:
		h.sse.open(w, r, c)
	case pathMessage:
		h.sse.message(w, r, c)
	default:
		if h.approves != nil && strings.HasPrefix(path, pathApprovals) {
			h.approve(w, r, who, c)
			return
		}
		reply.Refuse(w, http.StatusNotFound, "there is nothing here; MCP is at "+pathMCP)
	}
}

// admit returns a person's caller, and a function to call when the request ends. If there
// is no room for the person or their connection, it answers the request; leave is nil.
func (h *Server) admit(w http.ResponseWriter, r *http.Request, who guard.Person) (c *caller, leave func()) {
	c, leave, err := h.callerOf(who)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		reply.Refuse(w, http.StatusServiceUnavailable, err.Error()+"; try again soon")
		return nil, nil
	}
	if conn := conns.Of(r.Context()); conn != nil && !h.conns.Identify(conn, c) {
		leave()
		reply.Refuse(w, http.StatusServiceUnavailable, "too many connections are open; close some")
		return nil, nil
	}
	return c, leave
}

// ofPage reports whether a request is a browser's, about the approval page: programs send
// a token, and have paths of their own.
func ofPage(r *http.Request) bool {
	path := r.URL.EscapedPath()
	page := path+"/" == pathApprovals || strings.HasPrefix(path, pathApprovals) && !strings.HasPrefix(path, pathApprovals+"control/")
	return page && len(r.Header.Values("Authorization")) == 0
}

// enterPage lets a request of the page be a person's; see [Enter].
func (h *Server) enterPage(w http.ResponseWriter, r *http.Request, who guard.Person) (*http.Request, guard.Person, func()) {
	c, leave := h.admit(w, r, who)
	if leave == nil {
		return nil, who, nil
	}
	r, who, done := h.asking(w, withPerson(r, who), who, c)
	if done == nil {
		leave()
		return nil, who, nil
	}
	return r, who, func() { done(); leave() }
}

// approve passes on a request about the waiting calls.
func (h *Server) approve(w http.ResponseWriter, r *http.Request, who guard.Person, c *caller) {
	r, who, done := h.asking(w, r, who, c)
	if done == nil {
		return
	}
	defer done()
	h.approves(w, r, who)
}

// asking makes a request about the waiting calls one of the person's requests. It is made
// under the name that the person's calls have: a person whose name changed at the
// identity provider meanwhile is still the same person. If the person has too many open,
// it answers the request; done is nil.
func (h *Server) asking(w http.ResponseWriter, r *http.Request, who guard.Person, c *caller) (_ *http.Request, _ guard.Person, done func()) {
	if !c.admit(0) {
		reply.Refuse(w, http.StatusServiceUnavailable, "too many requests of this token are open")
		return nil, who, nil
	}
	r, stop := whileGood(r)
	ctx, cancel := context.WithCancel(r.Context())
	over := context.AfterFunc(h.ending, cancel)
	who.Name = c.person
	return r.WithContext(ctx), who, func() { over(); cancel(); stop(); c.release(0) }
}

// enter begins a request, unless the server is ending.
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
		if h.busy.IsClosed() {
			reply.Refuse(w, http.StatusServiceUnavailable, busy.EndingWords)
			return
		}
		h.sessions.get(w, r, c)
	case http.MethodDelete:
		h.sessions.delete(w, r, c)
	default:
		reply.NotAllowed(w, "GET, POST, DELETE")
	}
}

// health reports that the server runs, and nothing else.
func (h *Server) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		reply.NotAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Connection", "close")
	reply.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// Close ends every chat and stream, kills running programs, and returns when all
// of that is done, at most a few seconds after cancelling the calls.
func (h *Server) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end(wire.ErrEnded)
	h.wg.Wait()
	h.sessions.endAll(func(*session) bool { return true })
	for _, c := range h.everybody() {
		if ch := c.takeChat(); ch != nil {
			ch.Close()
		}
	}
}

// sweep ends unused chats and sessions, until the server ends.
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

// expire ends the chats that have been idle for the idle time at now.
func (h *Server) expire(now time.Time) {
	before := now.Add(-h.idle)
	h.sessions.expire(before)
	for _, c := range h.everybody() {
		if ch := c.idleChat(before); ch != nil {
			ch.Close()
		}
	}
	if h.people != nil {
		h.people.forget()
	}
}

// callerOf returns a person's caller, and a function to call when the request ends.
func (h *Server) callerOf(who guard.Person) (c *caller, leave func(), err error) {
	if c := h.fixed[who.Key]; c != nil {
		return c, func() {}, nil
	}
	c, err = h.people.enter(who)
	if err != nil {
		return nil, nil, err
	}
	return c, c.leave, nil
}

// everybody returns all current callers.
func (h *Server) everybody() []*caller {
	if h.people == nil {
		return h.callers
	}
	return slices.Concat(h.callers, h.people.all())
}
