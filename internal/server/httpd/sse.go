package httpd

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/busy"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/conns"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/guard"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

const (
	// maxSSE is how many connections of HTTP+SSE one credential may have.
	maxSSE = 16
	// fullSSE and mostSSE are for one such connection what package wire's
	// fullOutput and maxOutput are for standard output, which is the only one. A
	// larger message is sent when nothing else waits, and counts toward the
	// credential's answers.
	fullSSE = 1 << 20
	mostSSE = 4 << 20
)

// An sseConn is a connection of HTTP+SSE, the transport of 2024-11-05: the
// server sends on one stream, and the client posts. It behaves like the
// connection on standard input and output, and ends with its stream.
type sseConn struct {
	caller *caller
	conn   *wire.Conn
	ctx    context.Context // of its calls

	mu    sync.Mutex // one message at a time
	ended bool

	keeping sync.Mutex
	kept    map[*byte]int // :: a message's first byte → its size, which counts toward the caller's answers
	over    bool          // no more messages are kept
}

// keep counts a large message that waits to be written.
func (s *sseConn) keep(ctx context.Context, message []byte) error {
	if len(message) <= piece {
		return nil
	}
	if !s.caller.keep(ctx, len(message)) {
		return wire.ErrCancelled
	}
	s.keeping.Lock()
	defer s.keeping.Unlock()
	if s.over {
		s.caller.drop(len(message))
		return wire.ErrNoOutput
	}
	s.kept[&message[0]] = len(message)
	return nil
}

// wrote gives back what keep counted for a message, if anything.
func (s *sseConn) wrote(message []byte) {
	if len(message) == 0 {
		return
	}
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.caller.drop(s.kept[&message[0]])
	delete(s.kept, &message[0])
}

// forget gives back what keep counted for messages that will not be written.
func (s *sseConn) forget() {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.over = true
	for _, size := range s.kept {
		s.caller.drop(size)
	}
	s.kept = nil
}

// sse holds the connections of HTTP+SSE.
type sse struct {
	*core
	guard *guard.Guard

	mu   sync.Mutex
	byID map[string]*sseConn
}

// open opens a connection and serves it until its stream ends.
func (h *sse) open(w http.ResponseWriter, r *http.Request, c *caller) {
	if r.Method != http.MethodGet {
		reply.NotAllowed(w, "GET")
		return
	}
	if _, events := accepts(r); !events {
		reply.Refuse(w, http.StatusNotAcceptable, "the client must accept text/event-stream")
		return
	}
	if !bodiless(w, r) {
		return
	}
	if h.busy.IsClosed() {
		reply.Refuse(w, http.StatusServiceUnavailable, busy.EndingWords)
		return
	}
	r, stop := whileGood(r)
	defer stop()
	r, leave := conns.Attend(r)
	defer leave()
	ch, err := h.host.Open(wire.Client{Transport: "sse", Ends: "until this client closes", Person: c.person, Origin: c.origin})
	if err != nil {
		reply.Refuse(w, http.StatusInternalServerError, wire.Internal(h.logger, "a chat could not be started", err).Message)
		return
	}
	defer ch.Close()

	calls, end := context.WithCancelCause(h.ending)
	defer end(nil)
	id := rand.Text()
	s := &sseConn{caller: c, ctx: calls, kept: make(map[*byte]int)}
	out := &eventWriter{stream: h.newStream(w, true), wrote: s.wrote}
	if !h.keep(id, s) {
		reply.Refuse(w, http.StatusServiceUnavailable, errTooMany.Error())
		return
	}
	s.mu.Lock() // posted messages wait until the connection exists
	calm := out.stream.hurryAfter(h.ending, wire.FlushTime)
	err = out.raw([]byte(eventHead("endpoint") + h.guard.Prefix(r) + pathMessage + "?sessionId=" + id + eventTail))
	calm()
	if err == nil {
		s.conn = wire.NewConn(h.host, ch, out, wire.Share{Slots: c.slots, Full: fullSSE, Most: mostSSE, Keep: s.keep})
	}
	s.mu.Unlock()
	if err != nil {
		h.drop(id)
		h.logUnsent(err)
		return
	}

	defer out.stream.hurryAfter(h.ending, wire.EndTime+wire.FlushTime)() // calls get their time to end
	h.serve(r, s, out)
	h.drop(id)
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	end(wire.ErrCancelled) // if the server ends, the cause is already set
	s.conn.End(out)
	out.shut()
	s.forget()
}

// sessionIn returns the connection id that a request names; empty if it is not
// valid.
func sessionIn(r *http.Request) string {
	ids := r.URL.Query()["sessionId"]
	if len(ids) != 1 {
		return ""
	}
	return ids[0]
}

// serve waits until the connection is of no more use.
func (h *sse) serve(r *http.Request, s *sseConn, out *eventWriter) {
	t := time.NewTicker(h.beat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.conn.Beat()
		case <-s.conn.Broken():
			h.logUnsent(s.conn.Failure())
			return
		case <-r.Context().Done():
			out.stream.hurry(time.Now()) // the client does not read
			return
		case <-h.ending.Done():
			return
		}
	}
}

func (h *sse) keep(id string, s *sseConn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, have := range h.byID {
		if have.caller == s.caller {
			n++
		}
	}
	if h.ending.Err() != nil || n >= maxSSE {
		return false
	}
	h.byID[id] = s
	return true
}

func (h *sse) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byID, id)
}

// message accepts a posted message for a connection. Its answer goes on the
// connection's stream.
func (h *sse) message(w http.ResponseWriter, r *http.Request, c *caller) {
	if r.Method != http.MethodPost {
		reply.NotAllowed(w, "POST")
		return
	}
	h.mu.Lock()
	s := h.byID[sessionIn(r)]
	h.mu.Unlock()
	if s == nil || s.caller != c {
		reply.Refuse(w, http.StatusNotFound, "there is no such connection; open "+pathSSE)
		return
	}
	data, release, ok := h.read(w, r, c)
	if !ok {
		return
	}
	taken := false
	defer func() {
		if !taken {
			release()
		}
	}()
	data = wire.TrimLine(data)
	e, id, wrong := wire.Frame(data)
	if wrong != nil {
		reject(w, http.StatusBadRequest, id, wrong)
		return
	}
	if id != nil && !e.IsAnswer() {
		done, status, why := h.busy.Begin(c, personOf(r).Groups)
		if done == nil {
			reject(w, status, id, &wire.Problem{Code: wire.CodeBusy, Message: why})
			return
		}
		read := release
		release = func() { read(); done() }
	}
	s.mu.Lock()
	ended := s.ended || s.conn == nil
	if !ended {
		taken = true // counted until it is done
		s.conn.Take(h.host.OverHTTP(s.ctx, r.Header), e, id, data, release)
	}
	s.mu.Unlock()
	if ended {
		reply.Refuse(w, http.StatusNotFound, "the connection has ended")
		return
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintln(w, "accepted")
}

// An eventWriter writes each line as an event, and an empty line as a heartbeat.
type eventWriter struct {
	stream *stream
	wrote  func(line []byte) // called for each line that is no longer kept

	mu     sync.Mutex
	closed bool
}

func (e *eventWriter) Write(line []byte) (int, error) {
	defer e.wrote(line)
	event := [][]byte{[]byte(": \n\n")}
	if len(line) > 0 {
		event = [][]byte{[]byte(eventHead("message")), wire.TrimLine(line), []byte(eventTail)}
	}
	if err := e.raw(event...); err != nil {
		return 0, err
	}
	return len(line), nil
}

func (e *eventWriter) raw(parts ...[]byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return wire.ErrNoOutput
	}
	if err := e.stream.begin(); err != nil {
		return err
	}
	return e.stream.write(parts...)
}

// shut ends writing, and returns once no write is in progress.
func (e *eventWriter) shut() {
	if !e.mu.TryLock() {
		e.stream.hurry(time.Now())
		e.mu.Lock()
	}
	e.closed = true
	e.mu.Unlock()
}
