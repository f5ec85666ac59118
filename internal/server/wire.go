package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// Errors of JSON-RPC that are answered without the library.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeBusy           = -32000
)

// What every transport says of a request that it does not take up.
const (
	sameID          = "a request with this id is still under way"
	tooManyRequests = "too many requests are under way; wait for some to end"
	notLookedAt     = "the connection ended before the request was looked at"
)

// A wire is how the messages of a session reach its client. A stdio connection
// is one for all its requests; over HTTP each request has its own.
type wire interface {
	// send puts out one message and does not wait for it to be written.
	send(message any)
	// sendWhenRoom puts out one message as soon as there is room for it, or says
	// why it was not.
	sendWhenRoom(ctx context.Context, message any) error
	// asks reports whether a question of ours can be sent on it.
	asks() bool
}

// errCancelled is the cause of a context that the client cancelled.
var errCancelled = errors.New("cancelled by the client")

// errEnded is the cause of a context that ended with the connection. The runner
// hurries then: whoever ends a server does not wait long for it.
var errEnded = fmt.Errorf("the connection ended: %w", sandbox.ErrShutdown)

// questions are requests of ours that wait for the client's answer. The zero
// value is ready.
type questions struct {
	mu     sync.Mutex
	asked  map[string]chan envelope // :: id → where the answer goes
	nextID int64
}

// open makes an id for a question. The channel gets its answer, if one comes;
// forget is called when nobody waits for that any more.
func (q *questions) open() (id string, answer <-chan envelope, forget func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.nextID++
	id = strconv.FormatInt(q.nextID, 10)
	c := make(chan envelope, 1)
	if q.asked == nil {
		q.asked = make(map[string]chan envelope)
	}
	q.asked[id] = c
	return id, c, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.asked, id)
	}
}

// answer gives a response of the client to whoever asked. It reports false when
// nobody waits for it.
func (q *questions) answer(e envelope) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.asked[string(e.ID)]
	delete(q.asked, string(e.ID))
	if waiting == nil {
		return false
	}
	waiting <- e // room for one, and only one is sent
	return true
}

// early says why a request is not given to the library; nil when it is.
// initialized tells of the older client that the request belongs to.
func early(method string, params json.RawMessage, modern, initialized bool) *problem {
	if !modern && !initialized {
		switch method {
		case string(mcp.MethodInitialize), string(mcp.MethodPing), string(mcp.MethodServerDiscover):
		default:
			return &problem{codeInvalidRequest, "the connection is not initialized; send initialize first, or name a protocol version of 2026-07-28 or later in _meta"}
		}
	}
	if p := saysTooMuch(method, params); p != nil {
		return p
	}
	switch method {
	case string(mcp.MethodInitialize):
		if !modern && initialized {
			return &problem{codeInvalidRequest, "already initialized"}
		}
	case string(mcp.MethodToolsList):
		// The list has one page, so no cursor is one of ours.
		if hasCursor(params) {
			return &problem{codeInvalidParams, "the cursor is not one of this list"}
		}
	}
	return ambiguous(params)
}

// reply gives one message to the library and returns what goes back, with the
// id as it came: nothing for a notification, whose id is nil, and for a request
// that its client cancelled. Whatever the session still had to say has been
// sent by then, if the session was made for this message.
func (s *Server) reply(ctx context.Context, sess *session, own bool, id json.RawMessage, method string, raw []byte) mcp.JSONRPCMessage {
	ctx, ended := s.traced(ctx, sess, id, method, raw)
	reply := s.answer(ctx, sess, own, id, method, raw)
	ended(reply)
	return reply
}

// answer is reply without what is told of it.
func (s *Server) answer(ctx context.Context, sess *session, own bool, id json.RawMessage, method string, raw []byte) mcp.JSONRPCMessage {
	reply := s.library(s.mcp.WithContext(ctx, sess), id, method, raw)
	if own {
		sess.close()
	}
	if id == nil || reply == nil || errors.Is(context.Cause(ctx), errCancelled) {
		return nil // "The receiver of a cancellation SHOULD NOT send a response"
	}
	switch r := reply.(type) {
	case mcp.JSONRPCResponse:
		r.ID = mcp.NewRequestId(id)
		return r
	case mcp.JSONRPCError:
		r.ID = mcp.NewRequestId(id)
		r.Error = plainError(method, r.Error)
		return r
	}
	return reply
}

// library gives one message to the library, unless it is answered in front of
// it, and no panic of either to the caller.
func (s *Server) library(ctx context.Context, id json.RawMessage, method string, raw []byte) (reply mcp.JSONRPCMessage) {
	defer func() {
		if r := recover(); r != nil {
			ref := newCallID()
			s.logger.Error("a request panicked", "call", ref, "err", r, "stack", string(debug.Stack()))
			reply = mcp.NewJSONRPCError(mcp.NewRequestId(id), codeInternal, internalMessage(ref), nil)
		}
	}()
	if reply, ok := s.front(ctx, id, method, raw); ok {
		return reply
	}
	if ch, _, known := chatOf(ctx); known && id != nil && method == string(mcp.MethodSubscriptionsListen) {
		leave, ok := ch.listenPlace()
		if !ok {
			return mcp.NewJSONRPCError(mcp.NewRequestId(id), codeBusy, errTooManyListens.Error(), nil)
		}
		defer leave()
	}
	var wrong wrongRequest
	reply = s.mcp.HandleMessage(context.WithValue(ctx, wrongKey{}, &wrong), raw)
	if wrong.err != nil && id != nil {
		return errorReply(id, wrong.err)
	}
	return reply
}

// A wrongRequest is where a tool call says which error of JSON-RPC its request
// gets: of a handler's error the library keeps the text only.
type wrongRequest struct{ err *rpcError }

type wrongKey struct{}

// instead has e answer the request of ctx, and returns it.
func instead(ctx context.Context, e *rpcError) error {
	if w, ok := ctx.Value(wrongKey{}).(*wrongRequest); ok {
		w.err = e
	}
	return e
}

// cancelledID is the id, as written, that a notification of the client cancels;
// empty when it cannot be read, which cancels nothing.
func cancelledID(params json.RawMessage) string {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return string(bytes.TrimSpace(p.RequestID))
}

// frame reads the frame of a message, whose whole is data, and its id, when it is
// one that a request may have; or it says what is wrong with the frame.
func frame(data []byte) (e envelope, id json.RawMessage, _ *problem) {
	e, wrong := parse(data)
	if wrong != nil {
		return e, nil, wrong
	}
	id, wrong = e.malformed()
	return e, id, wrong
}

// rejection answers a message that the library does not get to see. The id is nil
// when there is none to give back.
func rejection(id json.RawMessage, p *problem) mcp.JSONRPCError {
	var value any
	if id != nil {
		value = id
	}
	return mcp.NewJSONRPCError(mcp.NewRequestId(value), p.code, p.message, nil)
}

// isAnswer reports whether a message answers a request.
func (e *envelope) isAnswer() bool { return e.Method == nil && (e.Result != nil || e.Error != nil) }

// malformed says what is wrong with the frame of a message; nil for nothing.
// Its id, when it is one that a request may have, is id.
func (e *envelope) malformed() (id json.RawMessage, _ *problem) {
	id, ok := requestID(e.ID)
	id = bytes.Clone(id) // it outlives the message
	switch {
	case e.JSONRPC != mcp.JSONRPC_VERSION:
		return id, &problem{codeInvalidRequest, `the message has no "jsonrpc": "2.0"`}
	case e.isAnswer():
		return id, nil
	case e.Method == nil:
		return id, &problem{codeInvalidRequest, `the message has no "method"`}
	case e.Result != nil || e.Error != nil:
		return id, &problem{codeInvalidRequest, `the message has a "method" and is a response too`}
	case len(e.ID) > 0 && !ok:
		return nil, &problem{codeInvalidRequest, `the "id" must be a string or a whole number`}
	}
	return id, nil
}
