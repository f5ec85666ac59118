package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/conns"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// post serves one message of Streamable HTTP.
func (h *sessions) post(w http.ResponseWriter, r *http.Request, c *caller) {
	asJSON, events := accepts(r)
	if !asJSON && !events {
		reply.Refuse(w, http.StatusNotAcceptable, "the client must accept application/json and text/event-stream")
		return
	}
	data, release, ok := h.read(w, r, c)
	if !ok {
		return
	}
	r, leave := conns.Attend(r)
	defer leave()
	x := &exchange{in: h, w: w, r: r, caller: c, asEvents: !asJSON, stream: h.newStream(w, events)}
	x.after(release)
	defer x.settle()
	data = wire.TrimLine(data)
	e, id, wrong := wire.Frame(data)
	if wrong != nil {
		reject(w, http.StatusBadRequest, id, wrong)
		return
	}
	x.envelope, x.id, x.raw = e, id, data
	if e.Method != nil {
		x.method = *e.Method
	}
	// Either makes it a request of the newer era; if the other is missing, the
	// client is told.
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) || e.Params.IsModern() {
		x.modern()
	} else {
		x.older()
	}
}

// An exchange is one posted message and its answer.
type exchange struct {
	in       *sessions
	w        http.ResponseWriter
	r        *http.Request
	caller   *caller
	envelope wire.Envelope
	id       json.RawMessage // nil: not a request
	method   string
	raw      []byte
	stream   *stream
	asEvents bool // the client does not accept plain JSON

	answered func()          // called when the answer is made; nil: not called
	kept     int             // bytes counted for a large answer; set by work
	left     <-chan struct{} // closed when a call that was left behind ends; nil: none was
	afters   []func()
}

// after arranges for f to be called when the exchange is over and any call left
// behind has ended: its resources count until then.
func (x *exchange) after(f func()) { x.afters = append(x.afters, f) }

// settle calls the functions given to after, last first.
func (x *exchange) settle() {
	all := func() {
		for _, f := range slices.Backward(x.afters) {
			f()
		}
	}
	if x.left == nil {
		all()
		return
	}
	go func() {
		<-x.left
		all()
	}()
}

// to returns the message for the host in a session; own says that the session
// was created for it.
func (x *exchange) to(sess *wire.Session, own bool) wire.Message {
	return wire.Message{Session: sess, Own: own, ID: x.id, Method: x.method, Params: x.envelope.Params, Raw: x.raw}
}

// traced adds the HTTP request's attributes to the request's spans, and to the request
// the groups of its token.
func (x *exchange) traced(ctx context.Context) context.Context {
	return wire.WithGroups(x.in.host.OverHTTP(ctx, x.r.Header), personOf(x.r).Groups)
}

func (x *exchange) reject(status, code int, format string, args ...any) {
	reject(x.w, status, x.id, &wire.Problem{Code: code, Message: fmt.Sprintf(format, args...)})
}

// modern serves a message of 2026-07-28 or later. There are no sessions: the
// chat belongs to the credential.
func (x *exchange) modern() {
	if x.envelope.IsAnswer() {
		x.reject(http.StatusBadRequest, wire.CodeInvalidRequest, "since 2026-07-28 a client answers questions with another request, and not with a response")
		return
	}
	if x.id == nil {
		// In this era closing the stream cancels, so this has no effect.
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	if !x.headersAgree() {
		return
	}
	if x.method == string(mcp.MethodSubscriptionsListen) && !x.stream.events {
		// A plain answer would stay silent, and nothing would notice when the
		// client leaves.
		x.reject(http.StatusNotAcceptable, wire.CodeInvalidRequest, "the client must accept text/event-stream to listen")
		return
	}
	if p := wire.Early(x.method, x.envelope.Params, true, false); p != nil {
		reject(x.w, statusOf(p.Code), x.id, p)
		return
	}
	if !x.begin(x.method == string(mcp.MethodSubscriptionsListen)) {
		return
	}
	if x.method == string(mcp.MethodSubscriptionsListen) {
		var stop func()
		x.r, stop = whileGood(x.r)
		x.after(stop)
	}
	ch, leave, err := x.caller.use(x.in.core)
	if err != nil {
		x.failed(err)
		return
	}
	x.after(leave)
	sess := wire.NewSession(x.in.host, x.stream, ch, new(wire.Peer), x.id)
	ctx, cancel := context.WithCancelCause(x.in.ending)
	defer cancel(nil)
	x.run(x.traced(ctx), cancel, sess, statusOf)
}

// headersAgree reports whether the headers agree with the body, since proxies
// that read only headers rely on that. If it reports false, it has answered the
// request.
func (x *exchange) headersAgree() bool {
	inBody := x.envelope.Params.Version()
	switch inHeader := x.r.Header.Get(mcp.HeaderProtocolVersion); {
	case inHeader == "":
		x.reject(http.StatusBadRequest, mcp.HEADER_MISMATCH, "the header %s is missing", mcp.HeaderProtocolVersion)
		return false
	case inBody == "":
		x.reject(http.StatusBadRequest, wire.CodeInvalidParams, "_meta has no %s, which the header %s says is %q", mcp.MetaKeyProtocolVersion, mcp.HeaderProtocolVersion, inHeader)
		return false
	case inHeader != inBody:
		x.reject(http.StatusBadRequest, mcp.HEADER_MISMATCH, "the header %s is %q and the body says %q", mcp.HeaderProtocolVersion, inHeader, inBody)
		return false
	case !mcp.IsValidProtocolVersion(inBody):
		return true // the library answers with the supported versions
	}
	if err := mcp.ValidateStandardHeaders(x.r.Header.Get, mcp.ProtocolVersion20260728, mcp.MCPMethod(x.method), x.envelope.Params.Raw()); err != nil {
		x.reject(http.StatusBadRequest, mcp.HEADER_MISMATCH, "%v", err)
		return false
	}
	return true
}

// statusOf returns the HTTP status for an error code, as in 2026-07-28.
func statusOf(code int) int {
	switch code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION, wire.CodeInvalidRequest, wire.CodeInvalidParams, wire.CodeParse:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// always200 is statusOf for the older era.
func always200(int) int { return http.StatusOK }

// older serves a message of the older era, which begins with initialize.
func (x *exchange) older() {
	version := x.r.Header.Get(mcp.HeaderProtocolVersion)
	if x.id != nil && !x.envelope.IsAnswer() && !x.begin(false) {
		return
	}
	if x.method == string(mcp.MethodInitialize) && x.id != nil {
		x.initialize()
		return
	}
	if version != "" && !mcp.IsValidProtocolVersion(version) {
		x.reject(http.StatusBadRequest, wire.CodeInvalidRequest, "the protocol version %q is not one of %s", version, strings.Join(mcp.ValidProtocolVersions, ", "))
		return
	}
	s := x.in.find(x.w, x.r, x.caller)
	if s == nil {
		return
	}
	x.after(s.leave)
	switch {
	case x.envelope.IsAnswer():
		s.base.Answer(x.envelope)
		x.w.WriteHeader(http.StatusAccepted)
	case x.id == nil:
		s.notified(x.method, x.envelope.Params)
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.inSession(s)
	}
}

// inSession serves a request of a session.
func (x *exchange) inSession(s *session) {
	if p := wire.Early(x.method, x.envelope.Params, false, s.base.Initialized()); p != nil {
		reject(x.w, http.StatusOK, x.id, p)
		return
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	p := &posted{id: string(x.id), cancel: cancel, stream: x.stream}
	if !s.begin(p) {
		x.reject(http.StatusBadRequest, wire.CodeInvalidRequest, wire.SameID)
		return
	}
	x.answered = func() { s.answered(p) }
	x.after(func() { s.finish(p) })
	sess := wire.NewSession(x.in.host, x.stream, s.chat, s.base.Peer, nil)
	x.run(x.traced(ctx), cancel, sess, always200)
}

// initialize begins a session.
func (x *exchange) initialize() {
	if p := wire.Early(x.method, x.envelope.Params, false, false); p != nil {
		reject(x.w, http.StatusOK, x.id, p)
		return
	}
	s, err := x.in.begin(x.caller, x.r)
	if err != nil {
		x.failed(err)
		return
	}
	defer s.leave()
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	reply := x.in.host.Reply(x.traced(ctx), x.to(s.base, false))
	if _, isError := reply.(mcp.JSONRPCError); isError || reply == nil || !x.in.keep(s) {
		x.in.endSession(s)
	} else {
		x.w.Header().Set(mcp.HeaderSessionID, s.id)
	}
	done := make(chan answer, 1)
	done <- x.encode(reply, always200)
	defer x.stream.hurryAfter(x.in.ending, wire.FlushTime)()
	x.in.logUnsent(x.finish(done))
}

// run passes the request to the library and serves its answer. It returns when
// both have ended. A client that leaves cancels the request, and so does the end
// of ctx. A request that does not end then is left behind.
func (x *exchange) run(ctx context.Context, cancel context.CancelCauseFunc, sess *wire.Session, status func(code int) int) {
	done := make(chan answer, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wire.Deepen(0)
		a := x.work(ctx, sess, status)
		if x.answered != nil {
			x.answered()
		}
		done <- a
	}()
	patience := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		x.stream.hurry(time.Now().Add(x.in.leaves + wire.FlushTime))
		time.AfterFunc(x.in.leaves, func() {
			close(patience)
			x.stream.close()
		})
	})
	err := x.finish(done)
	if err != nil {
		cancel(wire.ErrCancelled)
		x.in.logUnsent(err)
	}
	x.after(func() { x.caller.drop(x.kept) })
	if isLeft(ended, patience) {
		x.left = ended
		x.in.logger.Warn("a call did not end and was left behind", "method", x.method)
	}
	x.stream.close()
	stop()
}

// isLeft waits until a call has ended or patience is closed. It reports whether
// the call must be left behind, which is never so for a call that has ended.
func isLeft(ended, patience <-chan struct{}) bool {
	select {
	case <-ended:
		return false
	case <-patience:
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// finish writes everything that is queued, then the answer.
func (x *exchange) finish(done <-chan answer) error {
	if x.asEvents {
		if err := x.stream.begin(); err != nil {
			return err
		}
	}
	return x.stream.serve(x.r.Context().Done(), done, x.in.beat)
}

// work waits for a place and has the request processed.
func (x *exchange) work(ctx context.Context, sess *wire.Session, status func(int) int) answer {
	ctx, leave, ok := x.caller.slots.Enter(ctx, x.method)
	if !ok {
		if errors.Is(context.Cause(ctx), wire.ErrCancelled) {
			return answer{}
		}
		return x.encode(wire.Rejection(x.id, &wire.Problem{Code: wire.CodeBusy, Message: wire.NotLookedAt}), status)
	}
	defer leave()
	a := x.encode(x.in.host.Reply(ctx, x.to(sess, true)), status)
	if len(a.message) <= piece {
		return a
	}
	if !x.caller.keep(ctx, len(a.message)) {
		return answer{}
	}
	x.kept = len(a.message)
	return a
}

// encode encodes a reply as an answer.
func (x *exchange) encode(reply mcp.JSONRPCMessage, status func(int) int) answer {
	if reply == nil {
		return answer{}
	}
	a := answer{status: http.StatusOK}
	if e, ok := reply.(mcp.JSONRPCError); ok {
		a.status = status(e.Error.Code)
	}
	var err error
	if a.message, err = wire.Encode(reply); err != nil {
		a.message, _ = json.Marshal(wire.Rejection(x.id, wire.Internal(x.in.logger, "an answer cannot be encoded", err)))
	}
	return a
}

// failed answers a request for which there is no chat.
func (x *exchange) failed(err error) {
	if errors.Is(err, errTooMany) {
		x.reject(http.StatusServiceUnavailable, wire.CodeBusy, "%v", err)
		return
	}
	reject(x.w, http.StatusInternalServerError, x.id, wire.Internal(x.in.logger, "a chat could not be started", err))
}
