package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// maxInFlight is how many requests of one connection are accepted at once;
	// more are answered with an error rather than kept.
	maxInFlight = 1024
	// maxHeld is how many bytes the requests in flight of one connection may
	// have together. One that waits for a person takes many times its size.
	maxHeld = 32 << 20
	// drain is how long calls under way may go on after the input has ended.
	drain = 5 * time.Second
	// ending is how long calls that were told to end are waited for: the grace
	// that a program gets, and what it takes to put it away.
	ending = 6 * time.Second
	// flush is how much of that the client gets to read what is left, when all
	// calls have ended.
	flush = time.Second
)

// A conn is one client over one pair of streams: a line is a message. It
// differs from the library's own stdio transport in what clients were seen to need:
// lines are bounded, a last line without a newline is read, ids are kept
// exactly as they came, a cancelled request is not answered, what was written
// before the end of input reaches the client, and a client that does not read
// does not keep the server from ending.
type conn struct {
	server  *Server
	chat    *chat
	logger  *slog.Logger
	maxLine int
	out     *outbox

	legacy *session // of clients that say initialize; kept for the connection
	share  share

	mu       sync.Mutex
	inFlight map[string]*request // :: request id as written → the request, until its reply is put out
	requests int                 // those of inFlight, and those whose reply was put out just now
	held     int                 // bytes of requests
	wg       sync.WaitGroup      // the goroutines of requests
}

// A request is under way.
type request struct {
	cancel context.CancelCauseFunc
	size   int  // bytes of its line
	stream bool // subscriptions/listen: lasts until somebody ends it
}

// A share is what a connection may take up of what its client has.
type share struct {
	slots slots
	full  int // bytes that wait for the client, see fullOutput
	most  int // and at most, see maxOutput
	// keep, unless it is nil, counts a large message together with those of the
	// client's other connections, and waits until there is room for it.
	keep func(ctx context.Context, message []byte) error
}

// newConn starts a connection that writes to out.
func (s *Server) newConn(ch *chat, out io.Writer, of share) *conn {
	c := &conn{
		server: s, chat: ch, logger: s.logger, maxLine: s.limits.Request,
		out: newOutbox(out, of.full, of.most), share: of,
		inFlight: make(map[string]*request),
	}
	c.legacy = s.newSession(c, ch, new(peer), nil)
	ch.listen(c.legacy)
	return c
}

// end waits for the calls, which have been told to end, and for what is to be
// written; for neither without bound.
func (c *conn) end(out io.Writer) {
	c.legacy.close()
	latest := time.Now().Add(ending)
	t := time.NewTimer(ending)
	defer t.Stop()
	select {
	case <-c.idle():
	case <-t.C:
		c.logger.Warn("calls did not end and were left behind", "count", c.count())
	}
	c.out.close()
	last := time.NewTimer(min(flush, time.Until(latest)))
	defer last.Stop()
	select {
	case <-c.out.done:
		return
	case <-last.C:
	}
	c.logger.Warn("the client did not read everything that was written to it")
	if closer, ok := out.(io.Closer); ok {
		go closer.Close() // may wait for the write, which waits for the client
	}
}

// idle returns a channel that is closed when no request is under way. Nothing
// may be received after it is called.
func (c *conn) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(done)
	}()
	return done
}

// receive handles one line. It never blocks on a call: answers to questions
// arrive on the same stream.
func (c *conn) receive(ctx context.Context, l line) {
	if l.over {
		c.reject(idOf(l.data), &problem{codeInvalidRequest, fmt.Sprintf("the message is larger than %d bytes; send less at once", c.maxLine)})
		return
	}
	e, id, refused := frame(l.data)
	if refused != nil {
		c.reject(id, refused)
		return
	}
	c.take(ctx, e, id, l.data, func() {})
}

// take handles one message, of which raw is the whole. It is called for one
// after the other, and calls done when the message is held no longer.
func (c *conn) take(ctx context.Context, e envelope, id json.RawMessage, raw []byte, done func()) {
	switch {
	case e.isAnswer():
		defer done()
		c.legacy.answer(e)
	case id == nil:
		defer done()
		c.notified(ctx, *e.Method, e.Params, raw)
	case !c.requested(ctx, id, *e.Method, e.Params, raw, done):
		done()
	}
}

func (c *conn) notified(ctx context.Context, method string, params json.RawMessage, raw []byte) {
	switch method {
	case "notifications/initialized":
		if c.legacy.Initialized() {
			c.legacy.ready()
		}
	case "notifications/cancelled":
		c.mu.Lock()
		r := c.inFlight[cancelledID(params)]
		c.mu.Unlock()
		if r != nil {
			r.cancel(errCancelled)
		}
		return
	}
	c.handle(ctx, c.legacy, nil, method, raw, func() {})
}

// requested starts a request on a goroutine of its own. It reports false when
// there is nothing left of it to be done.
func (c *conn) requested(ctx context.Context, id json.RawMessage, method string, params json.RawMessage, raw []byte, done func()) bool {
	modern := isModern(params)
	if p := early(method, params, modern, c.legacy.Initialized()); p != nil {
		c.reject(id, p)
		return false
	}
	sess := c.legacy
	if modern {
		// A modern request brings its own capabilities; they must not change
		// what the connection's older client declared.
		sess = c.server.newSession(c, c.chat, new(peer), id)
	}
	r := &request{size: len(raw), stream: method == string(mcp.MethodSubscriptionsListen)}
	callCtx, cancel := context.WithCancelCause(ctx)
	r.cancel = cancel
	if p := c.admit(string(id), r); p != nil {
		cancel(nil)
		c.reject(id, p)
		return false
	}
	if method == string(mcp.MethodInitialize) {
		// The client's next message may rely on it. It takes no place: nothing is
		// received until it is done.
		defer c.release(string(id), r)
		c.handle(callCtx, sess, id, method, raw, func() { c.answered(string(id), r) })
		return false
	}
	go func() {
		defer done()
		c.workOn(callCtx, r, sess, id, method, raw)
	}()
	return true
}

// workOn handles an admitted request when there is a place for it.
func (c *conn) workOn(ctx context.Context, r *request, sess *session, id json.RawMessage, method string, raw []byte) {
	defer c.release(string(id), r)
	p := c.share.slots.of(method)
	if !p.take(ctx) {
		if !errors.Is(context.Cause(ctx), errCancelled) {
			c.answered(string(id), r)
			c.reject(id, &problem{codeBusy, notLookedAt})
		}
		return
	}
	defer p.give()
	c.handle(context.WithValue(ctx, slotKey{}, p), sess, id, method, raw, func() { c.answered(string(id), r) })
}

// asks: a connection takes questions at any time.
func (c *conn) asks() bool { return true }

// admit takes up a request, or says why not.
func (c *conn) admit(id string, r *request) *problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inFlight[id] != nil:
		return &problem{codeInvalidRequest, sameID}
	case c.requests >= maxInFlight,
		// The largest request there can be always fits in beside another one.
		c.held+r.size > max(maxHeld, 2*c.maxLine):
		return &problem{codeBusy, tooManyRequests}
	}
	c.inFlight[id] = r
	c.requests++
	c.held += r.size
	c.wg.Add(1)
	return nil
}

// answered frees the id of a request whose reply the client has next: it may use
// the id again then. It may be called more than once.
func (c *conn) answered(id string, r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[id] == r {
		delete(c.inFlight, id)
	}
}

func (c *conn) release(id string, r *request) {
	c.answered(id, r)
	c.mu.Lock()
	c.requests--
	c.held -= r.size
	c.mu.Unlock()
	r.cancel(nil)
	c.wg.Done()
}

// handle gives one message to the library and puts out the reply. id is nil for
// a notification, which has none. made is called before the client can have the
// reply.
func (c *conn) handle(ctx context.Context, sess *session, id json.RawMessage, method string, raw []byte, made func()) {
	reply := c.server.reply(ctx, sess, sess != c.legacy, id, method, raw)
	if reply == nil {
		return
	}
	if method == string(mcp.MethodInitialize) {
		made()
		c.send(reply) // what receives may not wait
		return
	}
	c.unsent(c.sendThen(ctx, reply, made))
}

// reject answers a message that the library does not get to see.
func (c *conn) reject(id json.RawMessage, p *problem) { c.send(rejection(id, p)) }

// send puts out one message and does not wait for it to be written.
func (c *conn) send(message any) {
	b, err := encodeLine(message)
	if err == nil {
		err = c.out.put(b)
	}
	c.unsent(err)
}

// sendWhenRoom puts out one message as soon as there is room for it.
func (c *conn) sendWhenRoom(ctx context.Context, message any) error {
	return c.sendThen(ctx, message, func() {})
}

// sendThen is sendWhenRoom that calls room when there is room, before the message
// is put out.
func (c *conn) sendThen(ctx context.Context, message any, room func()) error {
	b, err := encodeLine(message)
	if err != nil {
		return err
	}
	if c.share.keep != nil && len(b) > piece {
		if err := c.share.keep(ctx, b); err != nil {
			return err
		}
	}
	return c.out.putWhenRoom(ctx, b, room)
}

// unsent logs that a message was not put out. That the client is gone is said
// once, when the connection ends.
func (c *conn) unsent(err error) {
	if err != nil {
		c.logger.Debug("a message was not sent", "err", err)
	}
}

// cancelStreams ends the requests that last until somebody ends them.
func (c *conn) cancelStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.inFlight {
		if r.stream {
			r.cancel(errEnded)
		}
	}
}

// count returns how many requests are under way.
func (c *conn) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}
