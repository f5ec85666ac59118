package server

import (
	"context"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/runs"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

type callToolParams struct {
	PackID    string           `json:"pack_id"`
	Tool      string           `json:"tool"`
	Arguments *strictjson.Node `json:"arguments"`
	Workspace string           `json:"workspace"`
}

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
		prepare:     (*Server).prepareCallTool,
	}
}

func (s *Server) prepareCallTool(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p callToolParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if err := c.Require("tool", p.Tool); err != nil {
		return nil, err
	}
	if p.PackID == "" {
		ref, err := enabled.One(p.Tool, s.resolver.Named(c.Catalog, &c.Chat.Enabled, p.Tool))
		if err != nil {
			return nil, err
		}
		p.PackID, p.Tool = ref.Pack, ref.Tool
	}
	if err := c.RunsIn(p.Workspace); err != nil {
		return nil, err
	}
	pack, err := s.offer.Pack(c.Catalog, p.PackID)
	if err != nil {
		return nil, err
	}
	tool, err := s.enabledTool(c, pack, p.Tool)
	if err != nil {
		return nil, err
	}
	values, err := c.Check(tool, p.Arguments)
	if err != nil {
		return nil, err
	}
	of := s.planned(c, pack)
	filled, err := c.Expand(s.planner, of, tool, values)
	if err != nil {
		return nil, err
	}
	if filled.Missing != nil {
		c.Missing = filled.Missing
	}
	facts, tree, err := s.given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	of.Tree = tree
	planned, err := s.planner.Tool(ctx, of, tool, filled)
	if err != nil {
		return nil, err
	}
	r := &runs.Run{Call: c, Pack: pack, Plan: planned, Output: tool.Output, Allows: tool.Policy.Allows, Secrets: planned.Secrets}
	return s.runs.Action(r, gate.Request{
		Caller: c.Caller, Kind: gate.KindRun, Method: c.Method.Name, Pack: facts,
		Arguments: c.Args.Canonical(p.Arguments), Logged: c.Logged(planned.Unlogged), AlwaysAsk: tool.Policy.AlwaysAsk, Fields: filled.Fields,
		Workspace: c.Workspace().Dir, Scratch: c.Workspace().IsOwn, Run: &planned.Run,
	}), nil
}

// enabledTool finds a tool by its declared or its listed name.
func (s *Server) enabledTool(c *calls.Call, pack *packs.Pack, name string) (*tools.Tool, error) {
	set, err := s.toolSet(pack)
	if err != nil {
		return nil, err
	}
	tool := set.Lookup(name)
	if ref, ok := c.Chat.Enabled.Listed(name); ok && ref.Pack == pack.ID {
		listed := set.Lookup(ref.Tool)
		if tool != nil && tool != listed {
			return nil, toolerr.New(toolerr.CodeInvalidArguments, "Give the name of the one as it is declared, or of the other as it is listed.",
				"%q is the declared name of one tool of pack %q and the listed name of another, %q", name, pack.ID, ref.Tool)
		}
		tool = listed
	}
	if tool == nil {
		meant := slices.DeleteFunc(s.resolver.Named(c.Catalog, &c.Chat.Enabled, name), func(ref enabled.Ref) bool { return ref.Pack != pack.ID })
		if len(meant) == 1 {
			tool = set.Lookup(meant[0].Tool)
		}
	}
	if tool == nil {
		e := toolerr.New(toolerr.CodeNotFound, "Call capability_packs_enable_tools for the pack's tools.", "pack %q has no tool %q", pack.ID, name)
		e.Near = enabled.Near(name, set)
		return nil, e
	}
	if tool.Command == nil {
		return nil, toolerr.New(toolerr.CodeNotExecutable, "Read the pack's documents for how it is meant to be used.", "tool %q of pack %q is only declared: %s", tool.Name, pack.ID, tool.DeclaredOnly)
	}
	if !s.resolver.IsOn(c.Catalog, &c.Chat.Enabled, pack.ID, tool.Name) {
		return nil, toolerr.New(toolerr.CodeNotEnabled, "Call capability_packs_enable_tools with this pack_id first.", "tool %q of pack %q is not enabled in this chat", tool.Name, pack.ID)
	}
	return tool, nil
}

// planned returns what the planner needs to know about a call.
func (s *Server) planned(c *calls.Call, pack *packs.Pack) *plan.Call {
	p := &plan.Call{
		Pack: pack, Hides: s.offer.Hides, Workspace: c.Workspace().Dir, Folder: c.Workspace().Folder, OwnFolder: c.Workspace().IsOwn,
		Context: make(map[string]string), Filled: c.Filled,
	}
	if c.Catalog != nil {
		p.All = c.Catalog.All()
	}
	if c.Meta != nil {
		if said, ok := c.Meta.AdditionalFields[calls.ContextKey].(map[string]any); ok {
			for k, v := range said {
				if text, ok := v.(string); ok && text != "" {
					p.Context[k] = text
				}
			}
		}
	}
	return p
}
