package wire

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
	// MaxInFlight is how many requests of one connection are accepted at once;
	// more are answered with an error rather than kept.
	MaxInFlight = 1024
	// maxHeld is how many bytes the requests in flight of one connection may
	// have together. A request that waits for a person uses many times its size.
	maxHeld = 32 << 20
	// drain is how long calls in progress may continue after the input has
	// ended.
	drain = 5 * time.Second
	// EndTime is how long the server waits for cancelled calls: the grace period
	// of a program, and the time to clean up after it.
	EndTime = 6 * time.Second
	// FlushTime is how much of EndTime the client gets to read the rest, once
	// all calls have ended.
	FlushTime = time.Second
)

// A Conn is one client over one pair of streams, with one message per line. It
// differs from the library's own stdio transport in ways that real clients need:
// lines are bounded, a last line without a newline is read, ids are kept exactly
// as they arrived, a cancelled request is not answered, everything written
// before the end of input reaches the client, and a client that does not read
// does not keep the server from ending.
type Conn struct {
	host    Host
	chat    Chat
	logger  *slog.Logger
	maxLine int
	out     *outbox

	legacy *Session // for clients that send initialize; lives as long as the connection
	share  Share

	mu       sync.Mutex
	inFlight map[string]*request // :: request id as written → the request, until its reply is sent
	requests int                 // those in inFlight, and those whose reply was just sent
	held     int                 // bytes of requests
	wg       sync.WaitGroup      // counts the goroutines of requests
}

// A request is a request in progress.
type request struct {
	cancel context.CancelCauseFunc
	size   int  // bytes of its line
	stream bool // subscriptions/listen: lasts until it is cancelled
}

// A Share bounds what one connection may use of its client's resources.
type Share struct {
	Slots Slots
	Full  int // bytes that may wait for the client, see fullOutput
	Most  int // bytes that may wait at most, see maxOutput
	// Keep, unless nil, counts a large message together with those of the
	// client's other connections, and waits until there is room for it.
	Keep func(ctx context.Context, message []byte) error
}

// NewConn starts a connection that writes to out.
func NewConn(host Host, ch Chat, out io.Writer, of Share) *Conn {
	c := &Conn{
		host: host, chat: ch, logger: host.Logger(), maxLine: host.MaxMessage(),
		out: newOutbox(out, of.Full, of.Most), share: of,
		inFlight: make(map[string]*request),
	}
	c.legacy = NewSession(host, c, ch, new(Peer), nil)
	ch.Listen(c.legacy)
	return c
}

// End waits for the cancelled calls and for pending output, each for a bounded
// time.
func (c *Conn) End(out io.Writer) {
	c.legacy.Close()
	latest := time.Now().Add(EndTime)
	t := time.NewTimer(EndTime)
	defer t.Stop()
	select {
	case <-c.idle():
	case <-t.C:
		c.logger.Warn("calls did not end and were left behind", "count", c.count())
	}
	c.out.close()
	last := time.NewTimer(min(FlushTime, time.Until(latest)))
	defer last.Stop()
	select {
	case <-c.out.done:
		return
	case <-last.C:
	}
	c.logger.Warn("the client did not read everything that was written to it")
	if closer, ok := out.(io.Closer); ok {
		go closer.Close() // Close may wait for the write, which waits for the client
	}
}

// idle returns a channel that is closed when no request is in progress. No
// message may be received after the call to idle.
func (c *Conn) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(done)
	}()
	return done
}

// receive handles one line. It never blocks on a call, since answers to
// questions arrive on the same stream.
func (c *Conn) receive(ctx context.Context, l line) {
	if l.over {
		c.reject(idOf(l.data), &Problem{CodeInvalidRequest, fmt.Sprintf("the message is larger than %d bytes; send less at once", c.maxLine)})
		return
	}
	e, id, refused := Frame(l.data)
	if refused != nil {
		c.reject(id, refused)
		return
	}
	c.Take(ctx, e, id, l.data, func() {})
}

// Take handles one message; raw is the whole message. Callers call it for one
// message at a time. It calls done when it no longer holds the message.
func (c *Conn) Take(ctx context.Context, e Envelope, id json.RawMessage, raw []byte, done func()) {
	switch {
	case e.IsAnswer():
		defer done()
		c.legacy.Answer(e)
	case id == nil:
		defer done()
		c.notified(ctx, *e.Method, e.Params, raw)
	case !c.requested(ctx, id, *e.Method, e.Params, raw, done):
		done()
	}
}

func (c *Conn) notified(ctx context.Context, method string, params Params, raw []byte) {
	switch method {
	case "notifications/initialized":
		if c.legacy.Initialized() {
			c.legacy.Ready()
		}
	case "notifications/cancelled":
		c.mu.Lock()
		r := c.inFlight[params.CancelledID()]
		c.mu.Unlock()
		if r != nil {
			r.cancel(ErrCancelled)
		}
		return
	}
	c.handle(ctx, Message{Session: c.legacy, Method: method, Params: params, Raw: raw}, func() {})
}

// requested starts a request on its own goroutine. It reports false if nothing
// remains to be done.
func (c *Conn) requested(ctx context.Context, id json.RawMessage, method string, params Params, raw []byte, done func()) bool {
	modern := params.IsModern()
	if p := Early(method, params, modern, c.legacy.Initialized()); p != nil {
		c.reject(id, p)
		return false
	}
	sess := c.legacy
	if modern {
		// A modern request declares its own capabilities; they must not change
		// what the connection's older client declared.
		sess = NewSession(c.host, c, c.chat, new(Peer), id)
	}
	m := Message{Session: sess, Own: modern, ID: id, Method: method, Params: params, Raw: raw}
	r := &request{size: len(raw), stream: method == string(mcp.MethodSubscriptionsListen)}
	callCtx, cancel := context.WithCancelCause(ctx)
	r.cancel = cancel
	if p := c.admit(string(id), r); p != nil {
		cancel(nil)
		c.reject(id, p)
		return false
	}
	if method == string(mcp.MethodInitialize) {
		// The client's next message may rely on it, so handle it here. It takes
		// no place: nothing is received until it is done.
		defer c.release(string(id), r)
		c.handle(callCtx, m, func() { c.answered(string(id), r) })
		return false
	}
	go func() {
		defer done()
		c.workOn(callCtx, r, m)
	}()
	return true
}

// workOn waits for a place and handles an admitted request.
func (c *Conn) workOn(ctx context.Context, r *request, m Message) {
	id := string(m.ID)
	defer c.release(id, r)
	ctx, leave, ok := c.share.Slots.Enter(ctx, m.Method)
	if !ok {
		if !errors.Is(context.Cause(ctx), ErrCancelled) {
			c.answered(id, r)
			c.reject(m.ID, &Problem{CodeBusy, NotLookedAt})
		}
		return
	}
	defer leave()
	Deepen(0)
	c.handle(ctx, m, func() { c.answered(id, r) })
}

// Deepen makes a new goroutine's stack as large as most calls need. Otherwise the
// stack would grow in steps, and each step copies it: a twentieth of the time of a
// call. The argument and the result mean nothing; they keep the compiler from leaving it out.
//
//go:noinline
func Deepen(at byte) byte {
	var room [16 << 10]byte
	return room[at]
}

// Asks reports true: a connection takes questions at any time.
func (c *Conn) Asks() bool { return true }

// admit accepts a request, or returns why not.
func (c *Conn) admit(id string, r *request) *Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inFlight[id] != nil:
		return &Problem{CodeInvalidRequest, SameID}
	case c.requests >= MaxInFlight,
		// The largest possible request always fits beside another one.
		c.held+r.size > max(maxHeld, 2*c.maxLine):
		return &Problem{CodeBusy, TooManyRequests}
	}
	c.inFlight[id] = r
	c.requests++
	c.held += r.size
	c.wg.Add(1)
	return nil
}

// answered frees the id of a request whose reply is sent next: the client may
// then reuse the id. answered may be called more than once.
func (c *Conn) answered(id string, r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[id] == r {
		delete(c.inFlight, id)
	}
}

func (c *Conn) release(id string, r *request) {
	c.answered(id, r)
	c.mu.Lock()
	c.requests--
	c.held -= r.size
	c.mu.Unlock()
	r.cancel(nil)
	c.wg.Done()
}

// handle passes one message to the host and sends the reply. It calls made
// before the client can have the reply.
func (c *Conn) handle(ctx context.Context, m Message, made func()) {
	reply := c.host.Reply(ctx, m)
	if reply == nil {
		return
	}
	if m.Method == string(mcp.MethodInitialize) {
		made()
		c.Send(reply) // the receiver must not wait
		return
	}
	c.unsent(c.sendThen(ctx, reply, made))
}

// reject answers a message that is not passed to the library.
func (c *Conn) reject(id json.RawMessage, p *Problem) { c.Send(Rejection(id, p)) }

// Send queues one message and does not wait for it to be written.
func (c *Conn) Send(message any) {
	b, err := encodeLine(message)
	if err == nil {
		err = c.out.put(b)
	}
	c.unsent(err)
}

// SendWhenRoom queues one message as soon as there is room for it.
func (c *Conn) SendWhenRoom(ctx context.Context, message any) error {
	return c.sendThen(ctx, message, func() {})
}

// sendThen is SendWhenRoom, but calls room once there is room, before it queues
// the message.
func (c *Conn) sendThen(ctx context.Context, message any, room func()) error {
	b, err := encodeLine(message)
	if err != nil {
		return err
	}
	if c.share.Keep != nil {
		if err := c.share.Keep(ctx, b); err != nil {
			return err
		}
	}
	return c.out.putWhenRoom(ctx, b, room)
}

// unsent logs that a message was not sent. That the client is gone is logged
// only once, when the connection ends.
func (c *Conn) unsent(err error) {
	if err != nil {
		c.logger.Debug("a message was not sent", "err", err)
	}
}

// cancelStreams ends the requests that last until they are cancelled.
func (c *Conn) cancelStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.inFlight {
		if r.stream {
			r.cancel(ErrEnded)
		}
	}
}

// count returns how many requests are in progress.
func (c *Conn) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// Beat writes an empty line as a heartbeat.
func (c *Conn) Beat() { _ = c.out.put(nil) }

// Broken returns a channel that is closed when a message was lost; Failure says
// why.
func (c *Conn) Broken() <-chan struct{} { return c.out.broken }

// Failure returns why messages were lost, or nil.
func (c *Conn) Failure() error { return c.out.failure() }
