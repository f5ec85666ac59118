package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

const (
	// maxConcurrent is how many requests of one connection are worked on at
	// once. One that waits for a person, or for its turn to run, is not worked on.
	maxConcurrent = 64
	// maxInFlight is how many requests of one connection are accepted at once;
	// more are answered with an error rather than kept.
	maxInFlight = 1024
	// drain is how long calls under way may go on after the input has ended.
	drain = 5 * time.Second
)

// Errors of JSON-RPC that this transport answers itself.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeBusy           = -32000
)

// A conn is one client over one pair of streams: a line is a message. It
// differs from the library's own stdio transport in what clients.md measured:
// lines are bounded, a last line without a newline is read, ids are kept
// exactly as they came, a cancelled request is not answered, and what was
// written before the end of input reaches the client.
type conn struct {
	mcp     *mcpserver.MCPServer
	chat    *chat
	logger  *slog.Logger
	maxLine int

	out     io.Writer
	writeMu sync.Mutex // guards out: one whole line at a time

	legacy *session      // of clients that say initialize; kept for the connection
	work   chan struct{} // a place for each request being worked on

	mu       sync.Mutex
	inFlight map[string]*request // :: request id as written → the request
	wg       sync.WaitGroup      // the goroutines of inFlight
}

// A request is under way.
type request struct {
	cancel context.CancelCauseFunc
	stream bool // subscriptions/listen: lasts until somebody ends it
}

// errCancelled is the cause of a context that the client cancelled.
var errCancelled = errors.New("cancelled by the client")

// errEnded is the cause of a context that ended with the connection.
var errEnded = errors.New("the connection ended")

// ServeStdio serves one client until in ends or ctx is done, and returns when
// every call has ended and every reply is written. The library keeps one stdio
// session for the whole process; this one is the connection's own.
//
// At the end of in, calls under way have five seconds to finish before they
// are cancelled; when ctx is done they are cancelled at once.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(errEnded)

	ch, err := s.newChat("stdio", "until this client closes")
	if err != nil {
		return err
	}
	defer s.endChat(ch)
	c := &conn{
		mcp: s.mcp, chat: ch, logger: s.logger, maxLine: s.limits.Request,
		out: out, work: make(chan struct{}, maxConcurrent),
		inFlight: make(map[string]*request),
	}
	c.legacy = newSession(c, ch, nil)
	ch.listen(c.legacy)
	defer c.legacy.close()

	lines := make(chan line)
	go readLines(ctx, in, c.maxLine, lines)

	for {
		select {
		case <-ctx.Done():
			c.cancel(errEnded, nil)
			c.wg.Wait()
			return nil
		case l, ok := <-lines:
			if !ok {
				return c.finish(ctx)
			}
			if l.err != nil {
				c.finish(ctx)
				return fmt.Errorf("reading standard input: %w", l.err)
			}
			c.receive(ctx, l)
		}
	}
}

// finish ends a connection whose input has ended. Questions can no longer be
// answered, and streams have nobody to wait for; calls get the drain time.
func (c *conn) finish(ctx context.Context) error {
	c.legacy.close()
	c.cancel(errEnded, func(r *request) bool { return r.stream })
	done := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(done)
	}()
	t := time.NewTimer(drain)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	c.cancel(errEnded, nil)
	<-done
	return nil
}

// A line is one message, or says why there is none.
type line struct {
	data []byte
	over bool  // longer than allowed; data is empty
	err  error // reading ended with an error other than the end of input
}

// readLines sends the lines of in until it ends, and closes lines. It never
// holds more than max bytes of a line. It ends with in; a reader that blocks
// for ever keeps this goroutine, and nothing else.
func readLines(ctx context.Context, in io.Reader, max int, lines chan<- line) {
	defer close(lines)
	send := func(l line) bool {
		select {
		case lines <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	r := bufio.NewReaderSize(in, 64<<10)
	var buf []byte
	over := false
	for {
		part, err := r.ReadSlice('\n')
		if !over {
			if len(buf)+len(part) > max+1 { // the newline does not count
				over, buf = true, nil
			} else {
				buf = append(buf, part...)
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if over {
			if !send(line{over: true}) {
				return
			}
		} else if data := trimLine(buf); len(data) > 0 {
			if !send(line{data: data}) {
				return
			}
		}
		buf, over = nil, false
		if err != nil {
			if !errors.Is(err, io.EOF) {
				send(line{err: err})
			}
			return
		}
	}
}

// trimLine takes off what is not part of a message: white space, and the byte
// order mark that some Windows programs begin a stream with.
func trimLine(b []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("\xef\xbb\xbf")))
}

// envelope is what the transport needs of a message before the library has it.
type envelope struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Params  json.RawMessage `json:"params"`
}

// receive handles one line. It never blocks on a call: answers to questions
// arrive on the same stream.
func (c *conn) receive(ctx context.Context, l line) {
	if l.over {
		c.reject(nil, codeInvalidRequest, fmt.Sprintf("the message is larger than %d bytes; send less at once", c.maxLine))
		return
	}
	if l.data[0] == '[' && json.Valid(l.data) {
		c.reject(nil, codeInvalidRequest, "batches are not supported; send one message a line")
		return
	}
	var e envelope
	if err := json.Unmarshal(l.data, &e); err != nil {
		if json.Valid(l.data) {
			c.reject(nil, codeInvalidRequest, "the message is not a JSON-RPC request, notification or response")
		} else {
			c.reject(nil, codeParse, "the message is not JSON")
		}
		return
	}
	id, idOK := requestID(e.ID)
	switch {
	case e.JSONRPC != mcp.JSONRPC_VERSION:
		c.reject(id, codeInvalidRequest, `the message has no "jsonrpc": "2.0"`)
	case e.Method == nil && (e.Result != nil || e.Error != nil):
		c.legacy.answer(e)
	case e.Method == nil:
		c.reject(id, codeInvalidRequest, `the message has no "method"`)
	case len(e.ID) == 0:
		c.notified(ctx, *e.Method, e.Params, l.data)
	case !idOK:
		c.reject(nil, codeInvalidRequest, `the "id" must be a string or a whole number`)
	default:
		c.requested(ctx, id, *e.Method, e.Params, l.data)
	}
}

// requestID reports whether raw is an id that a request may have, and returns
// it as it was written.
func requestID(raw json.RawMessage) (json.RawMessage, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	if raw[0] == '"' {
		return raw, true
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 {
		return nil, false
	}
	for _, b := range digits {
		if b < '0' || b > '9' {
			return nil, false
		}
	}
	return raw, true
}

func (c *conn) notified(ctx context.Context, method string, params json.RawMessage, raw []byte) {
	if method == "notifications/cancelled" {
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		// A cancellation that cannot be read cancels nothing.
		if json.Unmarshal(params, &p) == nil {
			c.mu.Lock()
			r := c.inFlight[string(p.RequestID)]
			c.mu.Unlock()
			if r != nil {
				r.cancel(errCancelled)
			}
		}
		return
	}
	c.handle(ctx, c.legacy, nil, raw)
}

// requested starts a request on a goroutine of its own.
func (c *conn) requested(ctx context.Context, id json.RawMessage, method string, params json.RawMessage, raw []byte) {
	modern := isModern(params)
	if !modern && !c.legacy.Initialized() {
		switch method {
		case string(mcp.MethodInitialize), string(mcp.MethodPing), string(mcp.MethodServerDiscover):
		default:
			c.reject(id, codeInvalidRequest, "the connection is not initialized; send initialize first, or name a protocol version of 2026-07-28 or later in _meta")
			return
		}
	}
	sess := c.legacy
	if modern {
		// A modern request brings its own capabilities; they must not change
		// what the connection's older client declared.
		sess = newSession(c, c.chat, id)
	}
	r := &request{stream: method == string(mcp.MethodSubscriptionsListen)}
	callCtx, cancel := context.WithCancelCause(ctx)
	r.cancel = cancel
	if code, problem := c.admit(string(id), r); problem != "" {
		cancel(nil)
		c.reject(id, code, problem)
		return
	}
	work := func() {
		defer c.release(string(id), r)
		if !r.stream { // a stream waits for ever, and must not hold a place
			select {
			case c.work <- struct{}{}:
				defer func() { <-c.work }()
			case <-callCtx.Done():
				if !errors.Is(context.Cause(callCtx), errCancelled) {
					c.reject(id, codeBusy, "the connection ended before the request was looked at")
				}
				return
			}
		}
		c.handle(callCtx, sess, id, raw)
	}
	if method == string(mcp.MethodInitialize) {
		// The client's next message may rely on it.
		work()
		return
	}
	go work()
}

// aside lets other requests be worked on while this one waits, and takes the
// place back before it returns. The caller has a place.
func (c *conn) aside(wait func()) {
	<-c.work
	wait()
	c.work <- struct{}{}
}

// admit takes up a request, or says why not.
func (c *conn) admit(id string, r *request) (code int, problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inFlight[id] != nil:
		return codeInvalidRequest, "a request with this id is still under way"
	case len(c.inFlight) >= maxInFlight:
		return codeBusy, "too many requests are under way; wait for some to end"
	}
	c.inFlight[id] = r
	c.wg.Add(1)
	return 0, ""
}

func (c *conn) release(id string, r *request) {
	c.mu.Lock()
	delete(c.inFlight, id)
	c.mu.Unlock()
	r.cancel(nil)
	c.wg.Done()
}

// isModern reports whether a request names a protocol version of 2026-07-28 or
// later for itself.
func isModern(params json.RawMessage) bool {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	var version string
	if json.Unmarshal(p.Meta[mcp.MetaKeyProtocolVersion], &version) != nil {
		return false
	}
	return mcp.IsModernProtocol(version)
}

// handle gives one message to the library and writes the reply. id is nil for
// a notification, which has none.
func (c *conn) handle(ctx context.Context, sess *session, id json.RawMessage, raw []byte) {
	ctx = c.mcp.WithContext(ctx, sess)
	reply := func() (reply mcp.JSONRPCMessage) {
		defer func() {
			if r := recover(); r != nil {
				ref := newCallID()
				c.logger.Error("a request panicked", "call", ref, "err", r, "stack", string(debug.Stack()))
				reply = mcp.NewJSONRPCError(mcp.NewRequestId(id), codeInternal, internalMessage(ref), nil)
			}
		}()
		return c.mcp.HandleMessage(ctx, raw)
	}()
	if sess != c.legacy {
		sess.close() // what the session still has to say goes before the reply
	}
	if id == nil || reply == nil || errors.Is(context.Cause(ctx), errCancelled) {
		return // "The receiver of a cancellation SHOULD NOT send a response"
	}
	switch r := reply.(type) {
	case mcp.JSONRPCResponse:
		r.ID = mcp.NewRequestId(id)
		reply = r
	case mcp.JSONRPCError:
		r.ID = mcp.NewRequestId(id)
		reply = r
	}
	if err := c.write(reply); err != nil {
		c.logger.Error("writing a reply", "err", err)
	}
}

// reject answers a message that the library does not get to see.
func (c *conn) reject(id json.RawMessage, code int, message string) {
	var value any
	if id != nil {
		value = id
	}
	if err := c.write(mcp.NewJSONRPCError(mcp.NewRequestId(value), code, message, nil)); err != nil {
		c.logger.Error("writing an error", "err", err)
	}
}

// write sends one message as one line.
func (c *conn) write(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	b = append(b, '\n')
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, err = c.out.Write(b)
	return err
}

// cancel ends the requests that which picks; nil picks all.
func (c *conn) cancel(cause error, which func(*request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.inFlight {
		if which == nil || which(r) {
			r.cancel(cause)
		}
	}
}
