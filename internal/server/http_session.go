package server

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

// An httpSession is a session of the older era. It is a wire, on which goes
// what belongs to no request: over a stream that waits for news, or else with
// whatever is under way, or else with what comes next. What waits on a stream for
// news when it ends goes on the next one. What a client did not read of what was
// written to it is lost, and so is what waits on the stream of a request that
// ends early.
type httpSession struct {
	http   *HTTP
	id     string
	caller *caller
	from   netip.Prefix // where it was begun
	chat   *chat
	base   *session        // what the client said; its requests have sessions of their own
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

// newHTTPSession makes a session, in use, that nobody can name before keep.
func (h *HTTP) newHTTPSession(c *caller, r *http.Request) (*httpSession, error) {
	if !h.makeRoom(c) {
		return nil, errTooMany
	}
	ch, err := h.server.newChatOf(c.person, c.origin, "http", "until this client closes")
	if err != nil {
		c.mu.Lock()
		c.sessions--
		c.mu.Unlock()
		return nil, err
	}
	s := &httpSession{
		http: h, id: rand.Text(), caller: c, from: networkOf(r), chat: ch, using: 1, used: time.Now(),
		inFlight: make(map[string]*posted),
	}
	s.ctx, s.cancel = context.WithCancelCause(h.ending)
	s.base = h.server.newSession(s, ch, new(peer), nil)
	ch.listen(s.base)
	return s, nil
}

// makeRoom counts one more session of the credential. When it has too many, an
// idle one ends: of the network that has most of these, since several people
// may share a token, one that was never used, or else was idle longest.
func (h *HTTP) makeRoom(c *caller) bool {
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
func (h *HTTP) idlest(c *caller) *httpSession {
	now := time.Now()
	count := make(map[netip.Prefix]int)
	for _, s := range h.sessions {
		if s.caller == c {
			count[s.from]++
		}
	}
	var victim *httpSession
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
func (s *httpSession) compareUse(other *httpSession) int {
	of := func(s *httpSession) (unused bool, last time.Time) {
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
func (h *HTTP) keep(s *httpSession) bool {
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
func (h *HTTP) endSession(s *httpSession) {
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
	s.chat.unlisten(s.base)
	s.base.close()
	s.caller.mu.Lock()
	s.caller.sessions--
	s.caller.mu.Unlock()
	if unused {
		h.server.endChat(s.chat)
	}
}

// sessionOf returns the session that a request names, in use until leave. One
// of another credential is as one that never was. When it returns nil, the
// request was answered.
func (h *HTTP) sessionOf(w http.ResponseWriter, r *http.Request, c *caller) *httpSession {
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

func (s *httpSession) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.using++
	s.uses++
	return true
}

func (s *httpSession) leave() {
	s.mu.Lock()
	s.using--
	s.used = time.Now()
	last := s.ended && s.using == 0
	s.mu.Unlock()
	if last {
		s.http.server.endChat(s.chat)
	}
}

// idleSince reports whether nobody used the session since before.
func (s *httpSession) idleSince(before time.Time) bool {
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
func (s *httpSession) begin(p *posted) bool {
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
func (s *httpSession) answered(p *posted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[p.id] == p {
		delete(s.inFlight, p.id)
	}
}

// finish forgets a request that is over.
func (s *httpSession) finish(p *posted) {
	s.answered(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = slices.DeleteFunc(s.busy, func(have *stream) bool { return have == p.stream })
}

// notified takes a notification of the client. The library does nothing with any
// other than these, and is not asked.
func (s *httpSession) notified(method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized":
		if s.base.Initialized() {
			s.base.ready()
		}
	case "notifications/cancelled":
		s.mu.Lock()
		p := s.inFlight[cancelledID(params)]
		s.mu.Unlock()
		if p != nil {
			p.cancel(errCancelled)
		}
	}
}

// send sends what belongs to no request.
func (s *httpSession) send(message any) {
	b, err := json.Marshal(message)
	if err != nil {
		s.http.logger.Error("a message cannot be encoded", "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// That the tools changed, twice before anybody heard, is one piece of news.
	if slices.ContainsFunc(s.owed, func(have []byte) bool { return string(have) == string(b) }) {
		return
	}
	s.owed = append(s.owed, b)
	s.owed = s.owed[max(0, len(s.owed)-maxOwed):]
	s.pay()
}

// pay sends what is owed on the newest stream that takes it. The caller holds
// mu.
func (s *httpSession) pay() {
	for len(s.owed) > 0 {
		paid := false
		for _, streams := range [][]*stream{s.waiting, s.busy} {
			for _, st := range slices.Backward(streams) {
				if paid = st.put(json.RawMessage(s.owed[0])) == nil; paid {
					break
				}
			}
			if paid {
				break
			}
		}
		if !paid {
			return
		}
		s.owed = s.owed[1:]
	}
}

// A session's own wire carries no questions: they belong to a request.
func (s *httpSession) sendWhenRoom(context.Context, any) error { return errNoStream }
func (s *httpSession) asks() bool                              { return false }

// get opens a stream for news of the older era.
func (h *HTTP) get(w http.ResponseWriter, r *http.Request, c *caller) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		notAllowed(w, "POST")
		return
	}
	if _, events := accepts(r); !events {
		refuse(w, http.StatusNotAcceptable, "the client must accept text/event-stream")
		return
	}
	s := h.sessionOf(w, r, c)
	if s == nil {
		return
	}
	defer s.leave()
	if !bodiless(w, r) {
		return
	}
	r, leave := attend(r)
	defer leave()
	st := h.newStream(w, true)
	stop := context.AfterFunc(s.ctx, func() {
		st.hurry(time.Now().Add(flush))
		st.close()
	})
	defer stop()
	s.wait(st) // before the client sees that the stream is there
	defer s.unwait(st)
	if err := st.begin(); err != nil {
		h.logUnsent(err)
		return
	}
	h.logUnsent(st.serve(r.Context().Done(), nil, h.beat))
	st.close()
}

// bodiless reports whether a request for a stream has no body, for which there is
// no deadline from then on; otherwise it was answered. The end of a body might
// never come, and that the client is gone is not noticed before it.
func bodiless(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength != 0 {
		refuse(w, http.StatusBadRequest, "a request for a stream has no body")
		return false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return true
}

// wait adds a stream that waits for news.
func (s *httpSession) wait(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, st)
	if len(s.waiting) > maxStreams {
		s.waiting[0].close()
		s.waiting = s.waiting[1:]
	}
	s.pay()
}

// unwait takes back a stream that waited for news, and what was to go on it.
func (s *httpSession) unwait(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(have *stream) bool { return have == st })
	unsent, _ := st.take(true)
	s.owed = append(unsent, s.owed...)
	s.owed = s.owed[max(0, len(s.owed)-maxOwed):]
	s.pay()
}

// delete ends a session of the older era.
func (h *HTTP) delete(w http.ResponseWriter, r *http.Request, c *caller) {
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
