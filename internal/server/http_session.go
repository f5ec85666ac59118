package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// maxStreams is how many streams of one session wait for news at once; then
	// the oldest ends. One that broke may not have been noticed yet.
	maxStreams = 4
	// maxOwed is how many messages a session keeps for the next stream.
	maxOwed = 64
)

// errTooMany is about a credential all of whose sessions are in use.
var errTooMany = errors.New("too many sessions are under way; end some")

// An httpSession is a session of the older era. It is a wire, on which goes
// what belongs to no request: over a stream that waits for news, or else with
// whatever is under way, or else with what comes next. Nothing is lost in
// between.
type httpSession struct {
	http   *HTTP
	id     string
	caller *caller
	chat   *chat
	base   *session        // what the client said; its requests have sessions of their own
	ctx    context.Context // done when the session ends
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	ended    bool
	using    int // HTTP requests; the chat ends when the session has ended and this is 0
	used     time.Time
	inFlight map[string]context.CancelCauseFunc // :: request id as written → what cancels it
	waiting  []*stream                          // for news, oldest first
	busy     []*stream                          // of requests, oldest first
	owed     [][]byte                           // encoded messages, oldest first
}

// newHTTPSession makes a session, in use, that nobody can name before keep.
func (h *HTTP) newHTTPSession(c *caller) (*httpSession, error) {
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
		http: h, id: rand.Text(), caller: c, chat: ch, using: 1, used: time.Now(),
		inFlight: make(map[string]context.CancelCauseFunc),
	}
	s.ctx, s.cancel = context.WithCancelCause(h.ending)
	s.base = h.server.newSession(s, ch, new(peer), nil)
	ch.listen(s.base)
	return s, nil
}

// makeRoom counts one more session of the credential. When it has too many, the
// one that was idle longest ends.
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
	var oldest *httpSession
	h.mu.Lock()
	for _, s := range h.sessions {
		if s.caller == c && (oldest == nil || s.lastUsed().Before(oldest.lastUsed())) && s.idleSince(time.Now()) {
			oldest = s
		}
	}
	if oldest != nil {
		delete(h.sessions, oldest.id)
	}
	h.mu.Unlock()
	if oldest == nil {
		return false
	}
	h.endSession(oldest)
	c.mu.Lock()
	c.sessions++
	c.mu.Unlock()
	return true
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
	s.cancel(errEnds)
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

func (s *httpSession) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// idleSince reports whether nobody used the session since before.
func (s *httpSession) idleSince(before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.using == 0 && !s.used.After(before)
}

// begin notes a request, unless one with its id is under way. What is owed goes
// on its stream.
func (s *httpSession) begin(id string, cancel context.CancelCauseFunc, st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[id] != nil {
		return false
	}
	s.inFlight[id] = cancel
	s.busy = append(s.busy, st)
	s.pay()
	return true
}

func (s *httpSession) finish(id string, st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlight, id)
	s.busy = slices.DeleteFunc(s.busy, func(have *stream) bool { return have == st })
}

// notified takes a notification of the client.
func (s *httpSession) notified(method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized":
		if s.base.Initialized() {
			s.base.ready()
		}
	case "notifications/cancelled":
		s.mu.Lock()
		cancel := s.inFlight[cancelledID(params)]
		s.mu.Unlock()
		if cancel != nil {
			cancel(errCancelled)
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
func (s *httpSession) aside(wait func())                       { wait() }

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
	st := h.newStream(w, true, nil)
	if err := st.begin(); err != nil {
		h.logUnsent(err)
		return
	}
	s.wait(st)
	defer s.unwait(st)
	stop := context.AfterFunc(s.ctx, func() {
		st.hurry(time.Now().Add(flush))
		st.close()
	})
	defer stop()
	h.logUnsent(st.serve(r.Context().Done(), nil, h.beat))
	st.close()
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

func (s *httpSession) unwait(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(have *stream) bool { return have == st })
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
