package httpd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/conns"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// maxUnused is how many messages a client has posted if it began a session and did
// nothing with it: only the notification that it is initialized.
const maxUnused = 1

// errTooMany means that all sessions of a credential are in use.
var errTooMany = errors.New("too many sessions are under way; end some")

// errSessionEnded is the cause of a context that ended with its session.
var errSessionEnded = errors.New("the session ended")

// sessions holds the sessions of the older era. Each belongs to one credential.
type sessions struct {
	*core

	mu   sync.Mutex
	byID map[string]*session // sessions that a client can name
}

// A session is a session of the older era. It ends when its client ends it, when
// it has been idle too long, when its credential has too many, or with the
// server.
type session struct {
	id     string
	caller *caller
	from   netip.Prefix // where it was begun from
	chat   wire.Chat
	news   *news
	base   *wire.Session   // what the client declared; each request has a session of its own
	ctx    context.Context // done when the session ends
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	ended    bool
	using    int // HTTP requests in progress; the chat ends when the session has ended and this is 0
	used     time.Time
	uses     int                // HTTP requests so far, not counting the first
	inFlight map[string]*posted // :: request id as written → the request, until its answer is made
}

// begin creates a session, in use, that no request can name before keep.
func (h *sessions) begin(c *caller, r *http.Request) (*session, error) {
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
		id: rand.Text(), caller: c, from: conns.NetworkOf(r), chat: ch, news: &news{logger: h.logger}, using: 1, used: time.Now(),
		inFlight: make(map[string]*posted),
	}
	s.ctx, s.cancel = context.WithCancelCause(h.ending)
	s.base = wire.NewSession(h.host, s.news, ch, new(wire.Peer), nil)
	ch.Listen(s.base)
	return s, nil
}

// makeRoom counts one more session of the credential. If there are too many, it
// ends an idle one, of the network that has the most idle sessions, since
// several people may share a token. Among these it ends one that was never used,
// or else the one idle longest.
func (h *sessions) makeRoom(c *caller) bool {
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
		delete(h.byID, victim.id)
	}
	h.mu.Unlock()
	if victim == nil {
		return false
	}
	// Count this session before the other one ends, or another request takes the
	// place.
	c.mu.Lock()
	c.sessions++
	c.mu.Unlock()
	h.endSession(victim)
	return true
}

// idlest returns the credential's session to end to make room; nil if all are in
// use. The caller holds mu.
func (h *sessions) idlest(c *caller) *session {
	now := time.Now()
	count := make(map[netip.Prefix]int)
	for _, s := range h.byID {
		if s.caller == c {
			count[s.from]++
		}
	}
	var victim *session
	for _, s := range h.byID {
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

// compareUse is negative if s is less worth keeping than other.
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

// keep makes the session available by its id, unless the server is ending.
func (h *sessions) keep(s *session) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending.Err() != nil {
		return false
	}
	h.byID[s.id] = s
	return true
}

// endSession ends a session that was removed: its requests and streams and, once
// those have ended, its chat.
func (h *sessions) endSession(s *session) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	unused := s.using == 0
	s.mu.Unlock()
	s.cancel(errSessionEnded)
	s.news.close()
	s.chat.Unlisten(s.base)
	s.base.Close()
	s.caller.mu.Lock()
	s.caller.sessions--
	s.caller.mu.Unlock()
	if unused {
		s.chat.Close()
	}
}

// find returns the session that a request names, in use until leave. A session
// of another credential is treated as nonexistent. If find returns nil, it has
// answered the request.
func (h *sessions) find(w http.ResponseWriter, r *http.Request, c *caller) *session {
	ids := r.Header.Values(mcp.HeaderSessionID)
	if len(ids) != 1 || ids[0] == "" {
		reply.Refuse(w, http.StatusBadRequest, "the header "+mcp.HeaderSessionID+" is required; send initialize first, or name a protocol version of 2026-07-28 or later in _meta")
		return nil
	}
	h.mu.Lock()
	s := h.byID[ids[0]]
	h.mu.Unlock()
	if s == nil || s.caller != c || !s.enter() {
		reply.Refuse(w, http.StatusNotFound, "there is no such session; send initialize for another one")
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

// idleSince reports whether the session was last used before a time.
func (s *session) idleSince(before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.using == 0 && !s.used.After(before)
}

// A posted is a request in progress in a session.
type posted struct {
	id     string // as written
	cancel context.CancelCauseFunc
	stream *stream
}

// begin records a request, unless one with its id is in progress. Owed news goes
// on its stream.
func (s *session) begin(p *posted) bool {
	s.mu.Lock()
	taken := s.inFlight[p.id] != nil
	if !taken {
		s.inFlight[p.id] = p
	}
	s.mu.Unlock()
	if !taken {
		s.news.carry(p.stream)
	}
	return !taken
}

// answered frees the id of a request whose answer is made: once the client has
// the answer, it may reuse the id. answered may be called more than once.
func (s *session) answered(p *posted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[p.id] == p {
		delete(s.inFlight, p.id)
	}
}

// finish removes a request that is over.
func (s *session) finish(p *posted) {
	s.answered(p)
	s.news.uncarry(p.stream)
}

// notified handles a notification from the client. The library does nothing with
// other notifications, so they are not passed on.
func (s *session) notified(method string, params wire.Params) {
	switch method {
	case "notifications/initialized":
		if s.base.Initialized() {
			s.base.Ready()
		}
	case "notifications/cancelled":
		s.mu.Lock()
		p := s.inFlight[params.CancelledID()]
		s.mu.Unlock()
		if p != nil {
			p.cancel(wire.ErrCancelled)
		}
	}
}

// delete ends a session at its client's request.
func (h *sessions) delete(w http.ResponseWriter, r *http.Request, c *caller) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		reply.NotAllowed(w, "POST")
		return
	}
	s := h.find(w, r, c)
	if s == nil {
		return
	}
	defer s.leave()
	h.mu.Lock()
	delete(h.byID, s.id)
	h.mu.Unlock()
	h.endSession(s)
	w.WriteHeader(http.StatusNoContent)
}

// get opens a stream for the news of a session.
func (h *sessions) get(w http.ResponseWriter, r *http.Request, c *caller) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		reply.NotAllowed(w, "POST")
		return
	}
	if _, events := accepts(r); !events {
		reply.Refuse(w, http.StatusNotAcceptable, "the client must accept text/event-stream")
		return
	}
	s := h.find(w, r, c)
	if s == nil {
		return
	}
	defer s.leave()
	if !bodiless(w, r) {
		return
	}
	r, stop := whileGood(r)
	defer stop()
	r, leave := conns.Attend(r)
	defer leave()
	st := h.newStream(w, true)
	defer context.AfterFunc(s.ctx, func() {
		st.hurry(time.Now().Add(wire.FlushTime))
		st.close()
	})()
	s.news.wait(st) // before the client sees the stream
	defer s.news.unwait(st)
	if err := st.begin(); err != nil {
		h.logUnsent(err)
		return
	}
	h.logUnsent(st.serve(r.Context().Done(), nil, h.beat))
	st.close()
}

// expire ends the sessions that were last used before a time.
func (h *sessions) expire(before time.Time) {
	h.endAll(func(s *session) bool { return s.idleSince(before) })
}

// endAll ends the sessions for which over returns true.
func (h *sessions) endAll(over func(*session) bool) {
	var gone []*session
	h.mu.Lock()
	for id, s := range h.byID {
		if over(s) {
			gone = append(gone, s)
			delete(h.byID, id)
		}
	}
	h.mu.Unlock()
	for _, s := range gone {
		h.endSession(s)
	}
}
