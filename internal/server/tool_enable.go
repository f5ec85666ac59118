package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// maxNamed is how many tools one call may name. By default a pack has no more than
// that.
const maxNamed = 200

type enableParams struct {
	PackID string `json:"pack_id"`
	// Tools are the tools to enable; nil is all, and an empty list disables all.
	Tools *[]string `json:"tools"`
}

type enableResult struct {
	Enabled bool          `json:"enabled"`
	Tools   []enabledTool `json:"tools"`
	// NotExecutable are tools that the pack declares without a command.
	NotExecutable []declaredTool `json:"not_executable,omitempty"`
}

type enabledTool struct {
	Name        string `json:"name"`
	Tool        string `json:"tool"`
	Description string `json:"description"`
	Signature   string `json:"signature"`
	// InputSchema is the schema of the arguments; absent if the signature says
	// everything. Some clients show their model no other.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

type declaredTool struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

func enableTool() *baseTool {
	no, yes := false, true
	return &baseTool{
		name:  toolname.Enable,
		title: "Enable a pack's tools",
		description: fixed("Make a pack's tools callable in this chat and get their signatures and schemas. " +
			"They appear as tools of their own, PACK__TOOL, and can be called with call_tool in any case."),
		input: `{"type":"object","properties":{"pack_id":{"type":"string"},` +
			`"tools":{"type":"array","items":{"type":"string"},"description":"only these; [] disables all"}},` +
			`"required":["pack_id"],"additionalProperties":false}`,
		output: `{"type":"object","properties":{"enabled":{"type":"boolean"},"tools":{"type":"array","items":{"type":"object","properties":{` +
			`"name":{"type":"string"},"tool":{"type":"string"},"description":{"type":"string"},"signature":{"type":"string"},"input_schema":{"type":"object"}},"required":["name","tool","description","signature"]}},` +
			`"not_executable":{"type":"array","items":{"type":"object","properties":{"tool":{"type":"string"},"reason":{"type":"string"}},"required":["tool","reason"]}},` + toolerr.Property + `}}`,
		annotations: mcp.ToolAnnotation{Title: "Enable a pack's tools", ReadOnlyHint: &no, DestructiveHint: &no, IdempotentHint: &yes, OpenWorldHint: &no},
		prepare:     (*Server).prepareEnable,
	}
}

func (s *Server) prepareEnable(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p enableParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if err := c.Require("pack_id", p.PackID); err != nil {
		return nil, err
	}
	if p.Tools != nil && len(*p.Tools) == 0 {
		return s.prepareDisable(c, p.PackID)
	}
	var named []string
	if p.Tools != nil {
		named = *p.Tools
	}
	if len(named) > maxNamed {
		return nil, toolerr.New(toolerr.CodeInvalidArguments, "Name fewer, or leave tools out for all.", "%d tools are named, and a pack has at most %d", len(named), maxNamed)
	}
	pack, err := s.offer.Pack(c.Catalog, p.PackID)
	if err != nil {
		return nil, err
	}
	facts, tree, err := s.given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	set, err := s.resolver.Set(pack)
	if err != nil {
		return nil, err
	}
	chosen, err := enabled.Choose(set, named)
	if err != nil {
		return nil, err
	}
	chosen = toolfiles.WithoutDenied(pack, tree, chosen)
	// Tools that are only declared take no room, and nobody is asked about them.
	var names []string
	for _, t := range chosen {
		if t.Command != nil {
			names = append(names, t.Name)
		}
	}
	if i := slices.IndexFunc(chosen, func(t *tools.Tool) bool { return t.Command == nil && set.Lookup(t.Name).Command != nil }); len(names) == 0 && i >= 0 {
		return nil, toolerr.New(toolerr.CodeNotExecutable, "Tell the user; packs-mcp show names the files of the pack that cannot be used.",
			"tool %q of pack %q cannot be enabled: %s", chosen[i].Name, pack.ID, chosen[i].DeclaredOnly)
	}
	if len(names) == 0 {
		return nil, toolerr.New(toolerr.CodeNotExecutable, "Read the pack's documents for how its tools are meant to be used.",
			"pack %q only declares these tools; none has a command", pack.ID)
	}
	if err := s.resolver.RoomFor(c.Catalog, &c.Chat.Enabled, pack.ID, names); err != nil {
		return nil, err
	}
	return &calls.Action{
		Request: gate.Request{
			Caller: c.Caller, Kind: gate.KindEnable, Method: c.Method.Name, Pack: facts,
			Tools: names, Hidden: hiddenInTools(chosen), Arguments: c.Args.Whole(), Logged: c.Logged(s.secrets),
		},
		Perform: func(ctx context.Context, permit *gate.Permit) (any, error) {
			if err := s.road.SameAs(ctx, c, pack, permit, false); err != nil {
				return nil, err
			}
			out, err := s.enable(ctx, c, pack, chosen)
			if err != nil {
				_ = permit.Withhold(err.Error(), "") // the log has that it was allowed
				return nil, err
			}
			return out, nil
		},
	}, nil
}

// hiddenInTools says how many invisible characters the model would get with the
// schemas of tools; empty for none. Descriptions are escaped, but the values that a
// call is checked against are not.
func hiddenInTools(chosen []*tools.Tool) string {
	var all []byte
	for _, t := range chosen {
		if t.Command != nil {
			all = appendTexts(all, toolerr.ReadableSchema(t.PortableSchema()))
		}
	}
	return given.Hidden(all)
}

// appendTexts appends the strings and keys of a JSON value, without JSON's escapes.
func appendTexts(to []byte, raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.Token()
		if err != nil {
			return to
		}
		if text, ok := token.(string); ok {
			to = append(append(to, text...), '\n')
		}
	}
}

// prepareDisable takes a pack's tools away from the chat. Nobody is asked: it shows
// nothing and starts nothing.
func (s *Server) prepareDisable(c *calls.Call, packID string) (*calls.Action, error) {
	id := packID
	if !c.Chat.Enabled.Knows(id) { // for a pack that was detached or has gone since, the id is enough
		pack, err := s.offer.Pack(c.Catalog, packID)
		if err != nil {
			return nil, err
		}
		id = pack.ID
	}
	return &calls.Action{
		Request: gate.Request{Caller: c.Caller, Kind: gate.KindList, Method: c.Method.Name, Arguments: c.Args.Whole(), Logged: c.Logged(s.secrets)},
		Perform: func(ctx context.Context, _ *gate.Permit) (any, error) {
			had := false
			if err := c.Chat.Change(ctx, func() { had = c.Chat.Enabled.Disable(id) }); err != nil {
				return nil, err
			}
			if had {
				c.Chat.Lists.TellTools(c.Catalog)
			}
			return &enableResult{Tools: []enabledTool{}}, nil
		},
	}, nil
}

// enable gives the chat the chosen tools, and tells its client if its list changes.
func (s *Server) enable(ctx context.Context, cl *calls.Call, pack *packs.Pack, chosen []*tools.Tool) (*enableResult, error) {
	skills := make(map[string]bool)
	for _, t := range s.skillTools(cl.Catalog, cl.Chat) {
		skills[toolname.Fold(t.name)] = true
	}
	var listed []string
	changed := false
	err := cl.Chat.Change(ctx, func() {
		listed, changed = cl.Chat.Enabled.Enable(pack.ID, chosen, s.resolver.InUseNow(cl.Catalog, &cl.Chat.Enabled)[pack.ID],
			func(folded string) bool { return skills[folded] })
	})
	if err != nil {
		return nil, err
	}
	out := &enableResult{Enabled: true, Tools: []enabledTool{}}
	for _, t := range chosen {
		if t.Command == nil {
			out.NotExecutable = append(out.NotExecutable, declaredTool{Tool: t.Name, Reason: safetext.Line(t.DeclaredOnly)})
			continue
		}
		out.Tools = append(out.Tools, enabledTool{
			Name: listed[len(out.Tools)], Tool: t.Name,
			Description: s.offer.DescribeLines(t.DescriptionFor(s.knownContext(), s.limits.Description)), Signature: safetext.Line(t.Signature()),
			InputSchema: moreThanSignature(toolerr.ReadableSchema(t.PortableSchema())),
		})
	}
	if changed {
		cl.Chat.Lists.TellTools(cl.Catalog)
	}
	return out, nil
}

// moreThanSignature returns a schema if it says more about an argument than its name,
// its type and its default, and nil otherwise.
func moreThanSignature(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]map[string]any `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return schema
	}
	for _, property := range s.Properties {
		for keyword := range property {
			if keyword != "type" && keyword != "default" {
				return schema
			}
		}
	}
	return nil
}
