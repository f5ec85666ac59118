package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/meant"
	"github.com/packs-mcp/packs-mcp/internal/server/runs"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

type execParams struct {
	PackID    string   `json:"pack_id"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	CwdPolicy string   `json:"cwd_policy"`
	Workspace string   `json:"workspace"`
}

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
		prepare:     (*Server).prepareExec,
	}
}

func (s *Server) prepareExec(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p execParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if err := c.Require("pack_id", p.PackID, "command", p.Command); err != nil {
		return nil, err
	}
	if err := c.RunsIn(p.Workspace); err != nil {
		return nil, err
	}
	switch p.CwdPolicy {
	case "", tools.CwdWorkspace, tools.CwdPackRoot:
	default:
		e := toolerr.New(toolerr.CodeInvalidArguments, "Correct the arguments and call again.", "cwd_policy is %q; it must be workspace or pack_root", p.CwdPolicy)
		e.Schema = json.RawMessage(c.Method.Input)
		return nil, e
	}
	for i, arg := range p.Args {
		if strings.ContainsRune(arg, 0) {
			e := toolerr.New(toolerr.CodeInvalidArguments, "Correct the arguments and call again.", "args[%d] has a NUL byte, which no program can be given", i)
			e.Schema = json.RawMessage(c.Method.Input)
			return nil, e
		}
	}
	pack, err := s.offer.Pack(c.Catalog, p.PackID)
	if err != nil {
		return nil, err
	}
	facts, tree, err := s.given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	of := s.planned(c, pack)
	of.Tree = tree
	planned, err := s.planner.Program(ctx, of, p.Command, p.Args, p.CwdPolicy)
	if hint := (meant.Command{Pack: pack, Workspace: c.Workspace(), Command: p.Command, Args: p.Args}).Explain(err); hint != nil {
		return nil, hint
	}
	if err != nil {
		return nil, err
	}
	r := &runs.Run{Call: c, Pack: pack, Plan: planned, Allows: tools.Policy{}.Allows, Secrets: planned.Secrets}
	return s.runs.Action(r, gate.Request{
		Caller: c.Caller, Kind: gate.KindExec, Method: c.Method.Name, Pack: facts,
		Arguments: c.Args.Whole(), Logged: c.Logged(planned.Unlogged),
		Workspace: c.Workspace().Dir, Scratch: c.Workspace().IsOwn, Run: &planned.Run,
	}), nil
}
