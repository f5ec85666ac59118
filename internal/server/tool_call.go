package server

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

func callTool() *baseTool {
	no, yes := false, true
	return &baseTool{
		name:        toolname.Call,
		title:       "Call a pack's tool",
		description: fixed("Call an enabled tool of a pack. The same as calling PACK__TOOL, for clients that do not show new tools."),
		input: `{"type":"object","properties":{"pack_id":{"type":"string"},` +
			`"tool":{"type":"string","description":"as declared or as listed"},` +
			`"arguments":{"type":"object","description":"as in the tool's signature and schema"},` +
			`"workspace":{"type":"string","description":"handle that a run returned; new for another"}},"required":["pack_id","tool","arguments"],"additionalProperties":false}`,
		output:      envelope.AnySchema,
		annotations: mcp.ToolAnnotation{Title: "Call a pack's tool", ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &no, OpenWorldHint: &yes},
		prepare: func(s *Server, ctx context.Context, c *calls.Call) (*calls.Action, error) {
			return s.runs.PrepareTool(ctx, c)
		},
	}
}
