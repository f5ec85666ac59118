// Package tracing begins and ends the span of each request, and says what may be known
// of its answer: the protocol's version, and the code of an error.
//
// It collects and sends no spans; packages spans and telemetry do.
package tracing

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// Begin begins the span of a request, if spans are collected, that is if tracer is not
// nil. ended must be called with the answer. The requests of every transport pass
// through here.
//
// The library has a hook for tracers. We do not use it: it does not see what is
// answered before the library, it makes two spans of a call, and it puts error texts,
// which hold what the client wrote, into both.
func Begin(ctx context.Context, tracer *spans.Tracer, m wire.Message) (_ context.Context, ended func(mcp.JSONRPCMessage)) {
	if tracer == nil || m.ID == nil {
		return ctx, untraced
	}
	var meta struct {
		TraceParent string `json:"traceparent"`
		TraceState  string `json:"tracestate"`
		Version     string `json:"io.modelcontextprotocol/protocolVersion"`
	}
	_ = json.Unmarshal(m.Params.Get("_meta"), &meta) // ignore what is malformed
	ctx, span := tracer.Begin(ctx, spans.Request{
		Method: m.Method, ID: string(m.ID), Session: m.Session.SessionID(),
		TraceParent: meta.TraceParent, TraceState: meta.TraceState,
	})
	if span == nil {
		return ctx, untraced
	}
	return ctx, func(reply mcp.JSONRPCMessage) {
		if v := cmp.Or(meta.Version, m.Session.ProtocolVersion()); mcp.IsValidProtocolVersion(v) {
			span.Version(v)
		}
		switch r := reply.(type) {
		case nil:
			span.Unanswered()
		case mcp.JSONRPCError:
			span.Refused(strconv.Itoa(r.Error.Code), CodeOf(r.Error.Data))
		}
		span.End()
	}
}

func untraced(mcp.JSONRPCMessage) {}

// CodeOf returns our code of the error in a result or in the data of an error; empty
// if there is none.
func CodeOf(v any) string {
	switch v := v.(type) {
	case *envelope.Envelope:
		return v.Code()
	case map[string]any:
		if e, ok := v["error"].(*toolerr.Error); ok {
			return e.Code
		}
	}
	return ""
}
