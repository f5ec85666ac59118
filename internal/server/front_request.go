package server

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A frontRequest is a request that is answered before the library sees it: the
// library has no hook for it, or it concerns one chat, while the library's registries
// are shared by all.
type frontRequest struct {
	method  string
	params  json.RawMessage
	modern  bool // of 2026-07-28 or later
	chat    *chats.Chat
	catalog *packs.Catalog // as it was at first; a call that the gate decides about looks again
}

// An inputResult asks a client of 2026-07-28 or later for a person's answer.
type inputResult struct {
	mcp.Result
	mcp.MultiRoundTripResult
}

// decode decodes the parameters of a request into v.
func (r *frontRequest) decode(v any) error {
	if len(r.params) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.params, v); err != nil {
		return toolerr.BadParams(r.method)
	}
	return nil
}

// A roundTrip holds the parameters with which a client carries an answer.
type roundTrip struct {
	Meta *mcp.Meta `json:"_meta"`
	mcp.MultiRoundTripParams
}

// pass handles a request that the gate decides about in the same way as a tool call.
// args are the arguments as they are shown and logged, an object.
func (s *Server) pass(ctx context.Context, method *baseTool, args *strictjson.Node, trip roundTrip, adapt func(*call)) (out any, question *inputResult, err error) {
	read := callargs.Of(args)
	c, err := s.newCall(ctx, wire.NewReference(), method, read, trip.Meta)
	if err != nil {
		s.refusedEarly(ctx, method.name, read, err)
		return nil, nil, err
	}
	if adapt != nil {
		adapt(c)
	}
	out, q, err := s.decide(ctx, c, unaskedAnswer(ctx, trip.MultiRoundTripParams))
	if q == nil {
		return out, nil, err
	}
	question = new(inputResult)
	question.ResultType = mcp.ResultTypeInputRequired
	question.MultiRoundTripResult = inputRequired(ctx, q).ResourceResult().MultiRoundTripResult
	return nil, question, nil
}
