package server

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

func execTool() *baseTool {
	no, yes := false, true
	return &baseTool{
		name:  toolname.Exec,
		title: "Run a command for a pack",
		description: fixed("Run one program for a pack that has no tool for it: no shell, no pipes, no network. " +
			"./NAME is a program inside the pack. Prefer the pack's tools."),
		input: `{"type":"object","properties":{"pack_id":{"type":"string"},` +
			`"command":{"type":"string","description":"a program, not a command line"},` +
			`"args":{"type":"array","items":{"type":"string"}},` +
			`"cwd_policy":{"type":"string","enum":["workspace","pack_root"]},` +
			`"workspace":{"type":"string","description":"handle that a run returned; new for another"}},"required":["pack_id","command"],"additionalProperties":false}`,
		output:      envelope.Schema,
		annotations: mcp.ToolAnnotation{Title: "Run a command for a pack", ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &no, OpenWorldHint: &yes},
		prepare: func(s *Server, ctx context.Context, c *calls.Call) (*calls.Action, error) {
			return s.runs.PrepareCommand(ctx, c)
		},
	}
}
