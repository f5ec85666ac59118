package httpd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

const (
	// maxStreams is how many streams of one session wait for news at once; then
	// the oldest ends. One that broke may not have been noticed yet.
	maxStreams = 4
	// maxUnused is how many messages a client posts that begins a session and does
	// nothing with it: that it is initialized.
	maxUnused = 1
	// maxOwed is how many messages a session keeps for the next stream.
	maxOwed = 64
)

// errTooMany is about a credential all of whose sessions are in use.
var errTooMany = errors.New("too many sessions are under way; end some")

// errSessionEnded is the cause of a context that ended with its session.
var errSessionEnded = errors.New("the session ended")

// An session is a session of the older era. It is a wire, on which goes
// what belongs to no request: over a stream that waits for news, or else with
// whatever is under way, or else with what comes next. What waits on a stream for
// news when it ends goes on the next one. What a client did not read of what was
// written to it is lost, and so is what waits on the stream of a request that
// ends early.
type session struct {
	http   *Server
	id     string
	caller *caller
	from   netip.Prefix // where it was begun
	chat   wire.Chat
	base   *wire.Session   // what the client said; its requests have sessions of their own
	ctx    context.Context // done when the session ends
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	ended    bool
	using    int // HTTP requests; the chat ends when the session has ended and this is 0
	used     time.Time
	uses     int                // HTTP requests there were, beside the first
	inFlight map[string]*posted // :: request id as written → the request, until its answer is made
	waiting  []*stream          // for news, oldest first
	busy     []*stream          // of requests, oldest first
	owed     [][]byte           // encoded messages, oldest first
}

// newSession makes a session, in use, that nobody can name before keep.
func (h *Server) newSession(c *caller, r *http.Request) (*session, error) {
	if !h.makeRoom(c) {
		return nil, errTooMany
	}
	ch, err := h.host.Open(wire.Client{Transport: "http", Ends: "until this client closes", Person: c.person, Origin: c.origin})
	if err != nil {
		c.mu.Lock()
		c.sessions--
		c.mu.Unlock()
		return nil, err
	}
	s := &session{
		http: h, id: rand.Text(), caller: c, from: networkOf(r), chat: ch, using: 1, used: time.Now(),
		inFlight: make(map[string]*posted),
	}
	s.ctx, s.cancel = context.WithCancelCause(h.ending)
	s.base = wire.NewSession(h.host, s, ch, new(wire.Peer), nil)
	ch.Listen(s.base)
	return s, nil
}

// makeRoom counts one more session of the credential. When it has too many, an
// idle one ends: of the network that has most of these, since several people
// may share a token, one that was never used, or else was idle longest.
func (h *Server) makeRoom(c *caller) bool {
	c.mu.Lock()
	full := c.sessions >= maxSessions
	if !full {
		c.sessions++
	}
	c.mu.Unlock()
	if !full {
		return true
	}
	h.mu.Lock()
	victim := h.idlest(c)
	if victim != nil {
		delete(h.sessions, victim.id)
	}
	h.mu.Unlock()
	if victim == nil {
		return false
	}
	// Counted before the other one ends, or somebody else takes its place.
	c.mu.Lock()
	c.sessions++
	c.mu.Unlock()
	h.endSession(victim)
	return true
}

// idlest returns the session of the credential that makes room for another one;
// nil when all are in use. The caller holds mu.
func (h *Server) idlest(c *caller) *session {
	now := time.Now()
	count := make(map[netip.Prefix]int)
	for _, s := range h.sessions {
		if s.caller == c {
			count[s.from]++
		}
	}
	var victim *session
	for _, s := range h.sessions {
		if s.caller != c || !s.idleSince(now) {
			continue
		}
		if victim == nil || cmp.Or(
			cmp.Compare(count[victim.from], count[s.from]),
			s.compareUse(victim),
		) < 0 {
			victim = s
		}
	}
	return victim
}

// compareUse is negative when the session is less worth keeping than another.
func (s *session) compareUse(other *session) int {
	of := func(s *session) (unused bool, last time.Time) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.uses <= maxUnused, s.used
	}
	unused, last := of(s)
	othersUnused, othersLast := of(other)
	switch {
	case unused && !othersUnused:
		return -1
	case othersUnused && !unused:
		return 1
	}
	return last.Compare(othersLast)
}

// keep lets the session be found by its id, unless the server ends.
func (h *Server) keep(s *session) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.sessions[s.id] = s
	return true
}

// endSession ends a session that cannot be found any more: its requests and
// streams, and, when those have ended, its chat.
func (h *Server) endSession(s *session) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	streams, unused := slices.Clone(s.waiting), s.using == 0
	s.mu.Unlock()
	s.cancel(errSessionEnded)
	for _, st := range streams {
		st.close()
	}
	s.chat.Unlisten(s.base)
	s.base.Close()
	s.caller.mu.Lock()
	s.caller.sessions--
	s.caller.mu.Unlock()
	if unused {
		s.chat.Close()
	}
}

// sessionOf returns the session that a request names, in use until leave. One
// of another credential is as one that never was. When it returns nil, the
// request was answered.
func (h *Server) sessionOf(w http.ResponseWriter, r *http.Request, c *caller) *session {
	ids := r.Header.Values(mcp.HeaderSessionID)
	if len(ids) != 1 || ids[0] == "" {
		refuse(w, http.StatusBadRequest, "the header "+mcp.HeaderSessionID+" is required; send initialize first, or name a protocol version of 2026-07-28 or later in _meta")
		return nil
	}
	h.mu.Lock()
	s := h.sessions[ids[0]]
	h.mu.Unlock()
	if s == nil || s.caller != c || !s.enter() {
		refuse(w, http.StatusNotFound, "there is no such session; send initialize for another one")
		return nil
	}
	return s
}

func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.using++
	s.uses++
	return true
}

func (s *session) leave() {
	s.mu.Lock()
	s.using--
	s.used = time.Now()
	last := s.ended && s.using == 0
	s.mu.Unlock()
	if last {
		s.chat.Close()
	}
}

// idleSince reports whether nobody used the session since before.
func (s *session) idleSince(before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.using == 0 && !s.used.After(before)
}

// A posted request is under way in a session.
type posted struct {
	id     string // as written
	cancel context.CancelCauseFunc
	stream *stream
}

// begin notes a request, unless one with its id is under way. What is owed goes
// on its stream.
func (s *session) begin(p *posted) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[p.id] != nil {
		return false
	}
	s.inFlight[p.id] = p
	s.busy = append(s.busy, p.stream)
	s.pay()
	return true
}

// answered frees the id of a request whose answer is made: once the client has
// it, it may use the id again. It may be called more than once.
func (s *session) answered(p *posted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[p.id] == p {
		delete(s.inFlight, p.id)
	}
}

// finish forgets a request that is over.
func (s *session) finish(p *posted) {
	s.answered(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = slices.DeleteFunc(s.busy, func(have *stream) bool { return have == p.stream })
}

// notified takes a notification of the client. The library does nothing with any
// other than these, and is not asked.
func (s *session) notified(method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized":
		if s.base.Initialized() {
			s.base.Ready()
		}
	case "notifications/cancelled":
		s.mu.Lock()
		p := s.inFlight[wire.CancelledID(params)]
		s.mu.Unlock()
		if p != nil {
			p.cancel(wire.ErrCancelled)
		}
	}
}

// delete ends a session of the older era.
func (h *Server) delete(w http.ResponseWriter, r *http.Request, c *caller) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		notAllowed(w, "POST")
		return
	}
	s := h.sessionOf(w, r, c)
	if s == nil {
		return
	}
	defer s.leave()
	h.mu.Lock()
	delete(h.sessions, s.id)
	h.mu.Unlock()
	h.endSession(s)
	w.WriteHeader(http.StatusNoContent)
}
