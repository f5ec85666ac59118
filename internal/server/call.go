package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/server/toolresult"
	"github.com/packs-mcp/packs-mcp/internal/server/tracing"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// A baseTool is one of the tools that are always there.
type baseTool struct {
	name        string // plain name, see [Server.exposed]
	title       string
	description func(*Server, *packs.Catalog, *toolfiles.Once) string
	input       string // JSON Schema
	output      string // JSON Schema
	annotations mcp.ToolAnnotation
	meta        map[string]any // what a list says besides; nil: the same as for the other tools
	cards       bool           // only for clients that show cards; see [Server.showsCards]
	// prepare decodes the arguments and finds out what the call would do. It changes
	// nothing.
	prepare func(*Server, context.Context, *calls.Call) (*calls.Action, error)
}

// method returns a tool as the road of calls knows it.
func (s *Server) method(t *baseTool) *calls.Method {
	return &calls.Method{Name: t.name, Input: t.input, Prepare: func(ctx context.Context, c *calls.Call) (*calls.Action, error) {
		return t.prepare(s, ctx, c)
	}}
}

// call handles every tool call. It recovers from panics; their texts go to the log
// and not to the client.
func (s *Server) call(ctx context.Context, req mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	id := wire.NewReference()
	fails := func(e *toolerr.Error) *mcp.CallToolResult {
		spans.From(ctx).ToolFailed(e.Code)
		return onceFor(ctx, toolresult.Failure(e))
	}
	defer func() {
		if r := recover(); r != nil {
			s.logger.Error("a tool call panicked", "call", id, "tool", req.Params.Name, "err", r, "stack", string(debug.Stack()))
			result = fails(&toolerr.Error{Code: toolerr.CodeInternalError, Message: wire.InternalMessage(id), Reference: id})
		}
	}()
	tool := s.base[toolname.Plain(req.Params.Name)]
	if tool == nil {
		return fails(s.road.Explain(fmt.Errorf("the library let tool %q through", req.Params.Name), id)), nil
	}
	args := callargs.Read(req.Params.RawArguments)
	if to, ok := req.Params.Arguments.(renamed); ok {
		if to.skill != "" {
			tool = openSkillTool(to.skill, args)
		}
		args = to.in(args)
	}
	spans.From(ctx).Handled(tool.name)
	c, err := s.road.New(ctx, id, s.method(tool), args, req.Params.Meta)
	if err != nil {
		s.road.RefusedEarly(ctx, tool.name, args, err)
		return fails(s.road.Explain(err, id)), nil
	}
	out, question, err := s.road.Decide(ctx, c, calls.UnaskedAnswer(ctx, req.Params.MultiRoundTripParams))
	if e, ok := errors.AsType[*toolerr.RPCError](err); ok {
		return nil, instead(ctx, e)
	}
	switch {
	case err != nil:
		return fails(s.road.Explain(err, id)), nil
	case question != nil:
		return calls.InputRequired(ctx, question).ToolResult(), nil
	}
	result, err = toolresult.Success(out, c.Note, knowsLinks(ctx))
	if err == nil && result.IsError {
		spans.From(ctx).ToolFailed(tracing.CodeOf(out))
	}
	return onceFor(ctx, result), err
}
