package calls

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// An InputResult asks a client of 2026-07-28 or later for a person's answer.
type InputResult struct {
	mcp.Result
	mcp.MultiRoundTripResult
}

// A RoundTrip holds the parameters with which a client carries an answer.
type RoundTrip struct {
	Meta *mcp.Meta `json:"_meta"`
	mcp.MultiRoundTripParams
}

// Pass handles a request that the gate decides about in the same way as a tool call.
// args are the arguments as they are shown and logged, an object.
func (r *Road) Pass(ctx context.Context, method *Method, args *strictjson.Node, trip RoundTrip, adapt func(*Call)) (out any, question *InputResult, err error) {
	read := callargs.Of(args)
	c, err := r.New(ctx, wire.NewReference(), method, read, trip.Meta)
	if err != nil {
		r.RefusedEarly(ctx, method.Name, read, err)
		return nil, nil, err
	}
	if adapt != nil {
		adapt(c)
	}
	out, q, err := r.Decide(ctx, c, UnaskedAnswer(ctx, trip.MultiRoundTripParams))
	if q == nil {
		return out, nil, err
	}
	question = new(InputResult)
	question.ResultType = mcp.ResultTypeInputRequired
	question.MultiRoundTripResult = InputRequired(ctx, q).ResourceResult().MultiRoundTripResult
	return nil, question, nil
}
