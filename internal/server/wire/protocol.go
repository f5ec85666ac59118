package wire

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// JSON-RPC error codes that are sent without the library.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeBusy           = -32000
)

// Messages with which every transport refuses a request.
const (
	SameID          = "a request with this id is still under way"
	TooManyRequests = "too many requests are under way; wait for some to end"
	NotLookedAt     = "the connection ended before the request was looked at"
)

// A Sender sends the messages of a session to its client. A stdio connection is
// one Sender for all its requests; over HTTP each request has its own.
type Sender interface {
	// Send queues one message and does not wait for it to be written.
	Send(message any)
	// SendWhenRoom queues one message as soon as there is room for it, or
	// returns why it could not.
	SendWhenRoom(ctx context.Context, message any) error
	// Asks reports whether the Sender can carry our questions.
	Asks() bool
}

// ErrCancelled is the cause of a context that the client cancelled.
var ErrCancelled = errors.New("cancelled by the client")

// ErrEnded is the cause of a context that ended with the connection. The runner
// then hurries, since a client or a person that ends a server does not wait
// long.
var ErrEnded = fmt.Errorf("the connection ended: %w", sandbox.ErrShutdown)

// questions are our requests that wait for the client's answer. The zero value
// is ready.
type questions struct {
	mu     sync.Mutex
	asked  map[string]chan Envelope // :: id → where the answer goes
	nextID int64
}

// open returns an id for a question. The channel receives the answer, if one
// arrives; the caller calls forget when it stops waiting.
func (q *questions) open() (id string, answer <-chan Envelope, forget func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.nextID++
	id = strconv.FormatInt(q.nextID, 10)
	c := make(chan Envelope, 1)
	if q.asked == nil {
		q.asked = make(map[string]chan Envelope)
	}
	q.asked[id] = c
	return id, c, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.asked, id)
	}
}

// answer passes a client's response to the goroutine that asked. It reports
// false if none waits for it.
func (q *questions) answer(e Envelope) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.asked[string(e.ID)]
	delete(q.asked, string(e.ID))
	if waiting == nil {
		return false
	}
	waiting <- e // buffered for one, and only one is sent
	return true
}

// Early returns why a request must not be passed to the library; nil if it may
// be. initialized is about the older client that the request belongs to.
func Early(method string, params Params, modern, initialized bool) *Problem {
	if !modern && !initialized {
		switch method {
		case string(mcp.MethodInitialize), string(mcp.MethodPing), string(mcp.MethodServerDiscover):
		default:
			return &Problem{CodeInvalidRequest, "the connection is not initialized; send initialize first, or name a protocol version of 2026-07-28 or later in _meta"}
		}
	}
	if p := params.saysTooMuch(method); p != nil {
		return p
	}
	switch method {
	case string(mcp.MethodInitialize):
		if !modern && initialized {
			return &Problem{CodeInvalidRequest, "already initialized"}
		}
	case string(mcp.MethodToolsList):
		// The list has one page, so no cursor can be ours.
		if params.hasCursor() {
			return &Problem{CodeInvalidParams, "the cursor is not one of this list"}
		}
	}
	return params.ambiguous()
}

// Frame reads the frame of the message data, and its id if it is a valid request
// id, or returns what is wrong with the frame.
func Frame(data []byte) (e Envelope, id json.RawMessage, _ *Problem) {
	e, wrong := parse(data)
	if wrong != nil {
		return e, nil, wrong
	}
	id, wrong = e.malformed()
	return e, id, wrong
}

// Rejection returns the answer to a message that is not passed to the library.
// The id is nil if there is none to return.
func Rejection(id json.RawMessage, p *Problem) mcp.JSONRPCError {
	var value any
	if id != nil {
		value = id
	}
	return mcp.NewJSONRPCError(mcp.NewRequestId(value), p.Code, p.Message, nil)
}

// IsAnswer reports whether a message answers a request.
func (e *Envelope) IsAnswer() bool { return e.Method == nil && (e.Result != nil || e.Error != nil) }

// malformed returns what is wrong with the frame of a message; nil if nothing
// is. id is the message's id if it is a valid request id.
func (e *Envelope) malformed() (id json.RawMessage, _ *Problem) {
	id, ok := requestID(e.ID)
	id = bytes.Clone(id) // it outlives the message
	switch {
	case e.JSONRPC != mcp.JSONRPC_VERSION:
		return id, &Problem{CodeInvalidRequest, `the message has no "jsonrpc": "2.0"`}
	case e.IsAnswer():
		return id, nil
	case e.Method == nil:
		return id, &Problem{CodeInvalidRequest, `the message has no "method"`}
	case e.Result != nil || e.Error != nil:
		return id, &Problem{CodeInvalidRequest, `the message has a "method" and is a response too`}
	case len(e.ID) > 0 && !ok:
		return nil, &Problem{CodeInvalidRequest, `the "id" must be a string or a whole number`}
	}
	return id, nil
}

// NewReference returns a name for one call, or one failure, in the logs.
func NewReference() string { return "call-" + rand.Text()[:12] }

// InternalMessage returns what a client is told about an internal failure: where
// to find it.
func InternalMessage(reference string) string {
	return fmt.Sprintf("internal error (%s); see the server's log", reference)
}

// Internal logs an internal failure and returns what the client is told about
// it.
func Internal(logger *slog.Logger, what string, err error) *Problem {
	ref := NewReference()
	logger.Error(what, "call", ref, "err", err)
	return &Problem{CodeInternal, InternalMessage(ref)}
}
