package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// send sends what belongs to no request.
func (s *session) Send(message any) {
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
func (s *session) pay() {
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
func (s *session) SendWhenRoom(context.Context, any) error { return errNoStream }
func (s *session) Asks() bool                              { return false }

// get opens a stream for news of the older era.
func (h *Server) get(w http.ResponseWriter, r *http.Request, c *caller) {
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
		st.hurry(time.Now().Add(wire.FlushTime))
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
func (s *session) wait(st *stream) {
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
func (s *session) unwait(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(have *stream) bool { return have == st })
	unsent, _ := st.take(true)
	s.owed = append(unsent, s.owed...)
	s.owed = s.owed[max(0, len(s.owed)-maxOwed):]
	s.pay()
}
