package httpd

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

const (
	// piece is how many bytes are written under one deadline: a client on a slow
	// line does read.
	piece = 64 << 10
	// maxWaiting is how many bytes may wait on one stream for its client,
	// besides the answer itself.
	maxWaiting = 1 << 20
)

// errNoStream is the error for a message that needs a stream of events where
// there is none.
var errNoStream = errors.New("the client takes no stream of events here")

// A stream is the response to one HTTP request: one JSON message, or a stream of
// events as soon as there is another message to send. Messages are queued; only
// the request's own goroutine writes, in serve.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	reads   time.Duration // how long the client may take to read a piece
	rate    int           // bytes a second that it must read overall
	events  bool          // the client takes a stream of events
	begun   bool          // as a stream of events; used by serve only

	mu     sync.Mutex
	queue  [][]byte
	size   int
	closed bool          // nothing more is accepted
	more   chan struct{} // has a value when queue or closed changed
	over   bool          // more was sent than may wait
	latest time.Time     // when everything must have been written; zero: no limit
}

func (h *core) newStream(w http.ResponseWriter, events bool) *stream {
	return &stream{w: w, control: http.NewResponseController(w), reads: h.reads, rate: h.rate, events: events, more: make(chan struct{}, 1)}
}

func (st *stream) Send(message any) { _ = st.put(message) }

func (st *stream) SendWhenRoom(_ context.Context, message any) error { return st.put(message) }

func (st *stream) Asks() bool { return st.events }

// put queues a message, or returns why it cannot be sent here.
func (st *stream) put(message any) error {
	b, err := wire.Encode(message)
	if err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case !st.events:
		return errNoStream
	case st.closed:
		return wire.ErrClosed
	case st.size > 0 && st.size+len(b) > maxWaiting:
		st.over = true
		st.wake()
		return wire.ErrNotRead
	}
	st.queue = append(st.queue, b)
	st.size += len(b)
	st.wake()
	return nil
}

// wake wakes serve. The caller holds mu.
func (st *stream) wake() {
	select {
	case st.more <- struct{}{}:
	default:
	}
}

// take empties the queue. With last, nothing more is accepted.
func (st *stream) take(last bool) (all [][]byte, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all = st.queue
	st.queue, st.size = nil, 0
	st.closed = st.closed || last
	if st.over {
		err = wire.ErrNotRead
	}
	return all, err
}

// close makes serve end, for a request whose only answer is its end.
func (st *stream) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	st.wake()
}

func (st *stream) isClosed() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.closed
}

// hurry sets when everything still to be written must have been written.
func (st *stream) hurry(latest time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.latest = latest
	_ = st.control.SetWriteDeadline(latest)
}

// hurryAfter bounds the time from the end of ctx until everything is written,
// unless stop is called first.
func (st *stream) hurryAfter(ctx context.Context, most time.Duration) (stop func() bool) {
	return context.AfterFunc(ctx, func() { st.hurry(time.Now().Add(most)) })
}

// begin makes the response a stream of events.
func (st *stream) begin() error {
	if st.begun {
		return nil
	}
	st.begun = true
	header := st.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-store, no-transform")
	header.Set("X-Accel-Buffering", "no") // a proxy must not collect events
	st.w.WriteHeader(http.StatusOK)
	return st.write(nil)
}

// event writes one message of the stream.
func (st *stream) event(message []byte) error {
	if err := st.begin(); err != nil {
		return err
	}
	return st.write([]byte(eventHead("message")), message, []byte(eventTail))
}

// An event is one line of data between eventHead and eventTail.
func eventHead(name string) string { return "event: " + name + "\ndata: " }

const eventTail = "\n\n"

// sign writes a heartbeat: a comment, which clients skip.
func (st *stream) sign() error {
	if !st.events {
		return nil
	}
	if err := st.begin(); err != nil {
		return err
	}
	return st.write([]byte(": \n\n"))
}

// write writes a message, given in parts, and flushes it. It writes in pieces;
// each piece has a deadline, and so has the whole.
func (st *stream) write(parts ...[]byte) error {
	size := 0
	for _, b := range parts {
		size += len(b)
	}
	whole := time.Now().Add(st.reads + time.Duration(size)*time.Second/time.Duration(st.rate))
	st.until(whole)
	for _, b := range parts {
		for len(b) > 0 {
			n := min(len(b), piece)
			st.until(whole)
			if _, err := st.w.Write(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
	}
	if err := st.control.Flush(); err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.latest.IsZero() {
		// A stream may be silent for long.
		_ = st.control.SetWriteDeadline(time.Time{})
	}
	return nil
}

// until sets the deadline of the next piece.
func (st *stream) until(whole time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	deadline := time.Now().Add(st.reads)
	for _, other := range []time.Time{whole, st.latest} {
		if !other.IsZero() && other.Before(deadline) {
			deadline = other
		}
	}
	_ = st.control.SetWriteDeadline(deadline)
}

// An answer is how a request ends.
type answer struct {
	message []byte // nil: without a message, as for a cancelled request
	status  int    // if it is not a stream of events
}

// serve writes what is sent until the answer arrives, and then accepts nothing
// more. It returns early with an error if the client is gone, does not read, or
// the stream was closed.
func (st *stream) serve(gone <-chan struct{}, done <-chan answer, beat time.Duration) error {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-st.more:
			if err := st.flush(false); err != nil {
				return err
			}
			if st.isClosed() {
				return wire.ErrClosed
			}
		case <-t.C:
			if err := st.sign(); err != nil {
				return err
			}
		case a := <-done:
			if err := st.flush(true); err != nil {
				return err
			}
			return st.finish(a)
		case <-gone:
			return wire.ErrClosed
		}
	}
}

// flush writes what is queued.
func (st *stream) flush(last bool) error {
	all, err := st.take(last)
	for _, b := range all {
		if err := st.event(b); err != nil {
			return err
		}
	}
	return err
}

// finish writes the answer.
func (st *stream) finish(a answer) error {
	switch {
	case a.message == nil && st.begun:
		return nil
	case a.message == nil && st.events:
		return st.begin()
	case a.message == nil:
		st.w.WriteHeader(http.StatusAccepted)
		return nil
	case st.begun:
		return st.event(a.message)
	}
	st.w.Header().Set("Content-Type", "application/json")
	st.w.Header().Set("Content-Length", strconv.Itoa(len(a.message)+1))
	st.w.WriteHeader(a.status)
	return st.write(a.message, []byte("\n"))
}
