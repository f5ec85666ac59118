package runs

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/meant"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

type callToolParams struct {
	PackID    string           `json:"pack_id"`
	Tool      string           `json:"tool"`
	Arguments *strictjson.Node `json:"arguments"`
	Workspace string           `json:"workspace"`
}

// PrepareTool prepares a call of a pack's tool.
func (s *Runs) PrepareTool(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p callToolParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if err := c.Require("tool", p.Tool); err != nil {
		return nil, err
	}
	if p.PackID == "" {
		ref, err := enabled.One(p.Tool, s.opts.Resolver.Named(c.Catalog, &c.Chat.Enabled, p.Tool))
		if err != nil {
			return nil, err
		}
		p.PackID, p.Tool = ref.Pack, ref.Tool
	}
	if err := c.RunsIn(p.Workspace); err != nil {
		return nil, err
	}
	pack, err := s.opts.Offer.Pack(c.Catalog, p.PackID)
	if err != nil {
		return nil, err
	}
	tool, err := s.opts.Resolver.Tool(c.Catalog, &c.Chat.Enabled, pack, p.Tool)
	if err != nil {
		return nil, err
	}
	values, err := c.Check(tool, p.Arguments)
	if err != nil {
		return nil, err
	}
	of := s.planned(c, pack)
	filled, err := c.Expand(s.opts.Planner, of, tool, values)
	if err != nil {
		return nil, err
	}
	if filled.Missing != nil {
		c.Missing = filled.Missing
	}
	facts, tree, err := s.opts.Given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	of.Tree = tree
	planned, err := s.opts.Planner.Tool(ctx, of, tool, filled)
	if err != nil {
		return nil, err
	}
	r := &Run{Call: c, Pack: pack, Plan: planned, Output: tool.Output, Allows: tool.Policy.Allows, Secrets: planned.Secrets}
	return s.Action(r, gate.Request{
		Caller: c.Caller, Kind: gate.KindRun, Method: c.Method.Name, Pack: facts,
		Arguments: c.Args.Canonical(p.Arguments), Logged: c.Logged(planned.Unlogged), AlwaysAsk: tool.Policy.AlwaysAsk, Fields: filled.Fields,
		Workspace: c.Workspace().Dir, Scratch: c.Workspace().IsOwn, Run: &planned.Run,
	}), nil
}

type execParams struct {
	PackID    string   `json:"pack_id"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	CwdPolicy string   `json:"cwd_policy"`
	Workspace string   `json:"workspace"`
}

// PrepareCommand prepares a call that runs one command for a pack.
func (s *Runs) PrepareCommand(ctx context.Context, c *calls.Call) (*calls.Action, error) {
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
	pack, err := s.opts.Offer.Pack(c.Catalog, p.PackID)
	if err != nil {
		return nil, err
	}
	facts, tree, err := s.opts.Given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	of := s.planned(c, pack)
	of.Tree = tree
	planned, err := s.opts.Planner.Program(ctx, of, p.Command, p.Args, p.CwdPolicy)
	if hint := (meant.Command{Pack: pack, Workspace: c.Workspace(), Command: p.Command, Args: p.Args}).Explain(err); hint != nil {
		return nil, hint
	}
	if err != nil {
		return nil, err
	}
	r := &Run{Call: c, Pack: pack, Plan: planned, Allows: tools.Policy{}.Allows, Secrets: planned.Secrets}
	return s.Action(r, gate.Request{
		Caller: c.Caller, Kind: gate.KindExec, Method: c.Method.Name, Pack: facts,
		Arguments: c.Args.Whole(), Logged: c.Logged(planned.Unlogged),
		Workspace: c.Workspace().Dir, Scratch: c.Workspace().IsOwn, Run: &planned.Run,
	}), nil
}

// planned returns what the planner needs to know about a call.
func (s *Runs) planned(c *calls.Call, pack *packs.Pack) *plan.Call {
	p := &plan.Call{
		Pack: pack, Hides: s.opts.Offer.Hides, Workspace: c.Workspace().Dir, Folder: c.Workspace().Folder, OwnFolder: c.Workspace().IsOwn,
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
