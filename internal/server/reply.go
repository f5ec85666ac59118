package server

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/tracing"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// Reply gives one message to the library and returns the reply, with the id as it
// came. It returns nothing for a notification, whose id is nil, and for a request
// that its client cancelled. If the session was made for this message, everything
// that it still had to send has been sent by then.
func (s *Server) Reply(ctx context.Context, m wire.Message) mcp.JSONRPCMessage {
	ctx, ended := tracing.Begin(ctx, s.opts.Spans, m)
	reply := s.answer(ctx, m)
	ended(reply)
	return reply
}

// answer is Reply without tracing.
func (s *Server) answer(ctx context.Context, m wire.Message) mcp.JSONRPCMessage {
	reply := s.library(s.mcp.WithContext(ctx, m.Session), m)
	if m.Own {
		m.Session.Close()
	}
	if m.ID == nil || reply == nil || errors.Is(context.Cause(ctx), wire.ErrCancelled) {
		return nil // "The receiver of a cancellation SHOULD NOT send a response"
	}
	switch r := reply.(type) {
	case mcp.JSONRPCResponse:
		r.ID = mcp.NewRequestId(m.ID)
		return r
	case mcp.JSONRPCError:
		r.ID = mcp.NewRequestId(m.ID)
		r.Error = toolerr.Plain(m.Method, r.Error)
		return r
	}
	return reply
}

// library gives one message to the library, unless it is answered before that. It
// recovers from panics in both.
func (s *Server) library(ctx context.Context, m wire.Message) (reply mcp.JSONRPCMessage) {
	defer func() {
		if r := recover(); r != nil {
			ref := wire.NewReference()
			s.logger.Error("a request panicked", "call", ref, "err", r, "stack", string(debug.Stack()))
			reply = mcp.NewJSONRPCError(mcp.NewRequestId(m.ID), wire.CodeInternal, wire.InternalMessage(ref), nil)
		}
	}()
	if ch, _, known := chats.Of(ctx); known && m.ID != nil && m.Method != string(mcp.MethodPing) {
		ch.CatchUp(ctx)
	}
	if reply, ok := s.front(ctx, m); ok {
		return reply
	}
	if ch, _, known := chats.Of(ctx); known && m.ID != nil && m.Method == string(mcp.MethodSubscriptionsListen) {
		leave, ok := ch.ListenPlace()
		if !ok {
			return mcp.NewJSONRPCError(mcp.NewRequestId(m.ID), wire.CodeBusy, "too many streams for news are open; end some of them first", nil)
		}
		defer leave()
	}
	var wrong wrongRequest
	reply = s.mcp.HandleMessage(context.WithValue(ctx, wrongKey{}, &wrong), m.Raw)
	if wrong.err != nil && m.ID != nil {
		return toolerr.Reply(m.ID, wrong.err)
	}
	return reply
}

// A wrongRequest is where a tool call leaves the JSON-RPC error that its request
// gets: the library keeps only the text of a handler's error.
type wrongRequest struct{ err *toolerr.RPCError }

type wrongKey struct{}

// instead makes e the answer to the request of ctx, and returns e.
func instead(ctx context.Context, e *toolerr.RPCError) error {
	if w, ok := ctx.Value(wrongKey{}).(*wrongRequest); ok {
		w.err = e
	}
	return e
}
