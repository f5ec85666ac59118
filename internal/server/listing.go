package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/envelope"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/spans"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// baseTools returns the six tools that are always there and, if the user's
// configuration says so, two for clients that show cards.
func (s *Server) baseTools() []*baseTool {
	all := []*baseTool{listTool(), openDocsTool(), readFileTool(), enableTool(), callTool(), execTool()}
	if s.opts.Cards {
		all = append(all, approvalsTool(), decideTool())
	}
	return all
}

// definition returns a base tool as it is registered. Its description is made each
// time it is listed; see [Server.listTools].
func (s *Server) definition(t *baseTool) mcp.Tool {
	meta := t.meta
	if meta == nil {
		// Claude Code hides the tools of servers until its model searches for them.
		// It shows these from the start; otherwise its model would not learn that
		// there are packs.
		meta = map[string]any{"anthropic/alwaysLoad": true}
	}
	return mcp.Tool{
		Name: s.exposed(t.name), Title: t.title, Annotations: t.annotations,
		RawInputSchema: json.RawMessage(t.input), RawOutputSchema: json.RawMessage(t.output), Meta: mcp.NewMetaFromMap(meta),
	}
}

// listTools is the library's tool filter. For a whole list it fills in the
// descriptions of the moment and adds the chat's own tools. It does nothing for a
// single tool, which is how the library asks whether a call may pass: the gate
// decides about calls.
func (s *Server) listTools(ctx context.Context, all []mcp.Tool) []mcp.Tool {
	if len(all) != len(s.base) {
		return all
	}
	cards, always := s.forCards(all)
	c, _, ok := chats.Of(ctx)
	if !ok {
		return s.fill(always, s.opts.Library.Catalog(ctx), nil)
	}
	out := c.Lists.GiveTools(ctx, func(catalog *packs.Catalog) []mcp.Tool { return s.fill(always, catalog, c) })
	if s.showsCards(ctx) {
		// follow does not compare these: they never change, and each request says
		// again whether its client gets them.
		out = append(out, cards...)
	}
	return out
}

// forCards splits base tools into those for clients that show cards and the others.
func (s *Server) forCards(all []mcp.Tool) (cards, always []mcp.Tool) {
	for _, t := range all {
		if base := s.base[toolname.Plain(t.Name)]; base != nil && base.cards {
			t.Description = base.description(s, nil, nil)
			cards = append(cards, t)
		} else {
			always = append(always, t)
		}
	}
	return cards, always
}

// tools returns all tools of a chat under a Catalog.
func (s *Server) tools(catalog *packs.Catalog, c *chats.Chat) []mcp.Tool {
	all := make([]mcp.Tool, 0, len(s.base))
	for _, name := range slices.Sorted(maps.Keys(s.base)) {
		if t := s.base[name]; !t.cards {
			all = append(all, s.definition(t))
		}
	}
	return s.fill(all, catalog, c)
}

// fill gives the base tools their descriptions, and adds the chat's own tools.
func (s *Server) fill(base []mcp.Tool, catalog *packs.Catalog, c *chats.Chat) []mcp.Tool {
	out := make([]mcp.Tool, 0, len(base))
	once := s.files.Once() // a list that has a pack's tools does not say that it has none
	for _, t := range base {
		if base := s.base[toolname.Plain(t.Name)]; base != nil {
			t.Description = base.description(s, catalog, once)
		}
		out = append(out, t)
	}
	for _, t := range s.skillTools(catalog, c) {
		out = append(out, s.listedSkill(t))
	}
	if c != nil {
		out = append(out, s.packTools(catalog, once, c)...)
	}
	return out
}

// packTools returns the tools of a chat's enabled packs, by name. A pack that was
// detached, or whose tools are not valid now, has none until it is back.
func (s *Server) packTools(catalog *packs.Catalog, once *toolfiles.Once, c *chats.Chat) []mcp.Tool {
	var out []mcp.Tool
	for id, names := range s.resolver.InUse(catalog, &c.Enabled, once.Offered) {
		pack := catalog.ByID(id)
		if pack == nil {
			continue
		}
		set := once.Offered(pack)
		if set == nil {
			continue
		}
		for _, t := range set.Tools {
			if listed := names[t.Name]; listed != "" && t.Command != nil {
				out = append(out, s.packTool(pack, t, listed))
			}
		}
	}
	slices.SortFunc(out, func(a, b mcp.Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// packTool returns a pack's tool as a client sees it: with its own schema, made
// acceptable to every client, and with hints that state only what this program knows.
func (s *Server) packTool(pack *packs.Pack, t *tools.Tool, listed string) mcp.Tool {
	no, yes := false, true
	network := t.Policy.Network != "" && t.Policy.Network != tools.NetworkNone
	title := safetext.Line(t.Title)
	if title == "" {
		title = t.Name
	}
	of := " (tool of the capability pack " + pack.ID + ")"
	about := s.offer.DescribeLines(t.DescriptionFor(s.knownContext(), max(1, s.limits.Description-utf8.RuneCountInString(of)-1)))
	if strings.Contains(about, "\n") {
		of = "\n\n" + of[1:] // not in the last example
	}
	output := envelope.Schema
	if t.Output.Merged {
		output = envelope.AnySchema
	}
	return mcp.Tool{
		Name: listed, Title: title,
		Description:     safetext.Shorten(strings.TrimSpace(about+of), s.limits.Description),
		RawInputSchema:  toolerr.ReadableSchema(t.PortableSchema()),
		RawOutputSchema: json.RawMessage(output),
		Annotations:     mcp.ToolAnnotation{Title: title, ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &no, OpenWorldHint: &network},
	}
}

// A renamed call is a call of a base tool that was made under another name.
// [Server.rename] stores it in place of the library's decoded arguments. No client
// can put one there, since what a client sends is decoded from JSON.
type renamed struct {
	pack, tool string // of a call of call_tool; if pack is empty, call_tool refuses the tool
	workspace  string // handle
	skill      string // of a call of a pack's own tool: the pack's id
}

// in returns the arguments for the base tool, made from those of the call.
func (r renamed) in(args *callargs.Arguments) *callargs.Arguments {
	if args.Tree == nil {
		return args
	}
	var members []strictjson.Member
	switch {
	case r.skill != "":
		// The pack is among the arguments in the log, as it is for open_docs.
		members = slices.DeleteFunc(slices.Clone(args.Tree.Members), func(m strictjson.Member) bool { return m.Key == "pack_id" })
		members = append(members, callargs.Text("pack_id", r.skill))
	default:
		members = []strictjson.Member{callargs.Text("pack_id", r.pack), callargs.Text("tool", r.tool), {Key: "arguments", Value: args.Tree}}
		if r.workspace != "" {
			members = append(members, callargs.Text("workspace", r.workspace))
		}
	}
	return callargs.Of(strictjson.NewObject(members...))
}

// rename is a hook that the library calls before a call. It turns another spelling of
// a base tool's name into the listed one, and a call of a pack's tool, under any of
// its names, into a call of call_tool, so that all are handled alike.
func (s *Server) rename(ctx context.Context, _ any, req *mcp.CallToolRequest) {
	req.Params.Arguments = nil // the same arguments decoded; a waiting call would hold both
	name := req.Params.Name
	c, _, ok := chats.Of(ctx)
	if !ok {
		return
	}
	ref, listed := c.Enabled.Listed(name)
	spoken := name
	if !listed {
		if plain := s.baseNamed(name); plain != "" {
			req.Params.Name = s.exposed(plain)
			spans.From(ctx).Tool(req.Params.Name)
			return
		}
		if s.asSkill(ctx, c, name, req) {
			return
		}
		spoken = s.exposed(toolname.Call) // the other name is not listed
		switch found := s.resolver.Named(c.Catalog(ctx), &c.Enabled, name); len(found) {
		case 0:
			for rest, certain := range toolname.WithoutPrefix(name) {
				if certain && s.asSkill(ctx, c, rest, req) {
					return
				}
			}
			if ref.Pack, ref.Tool, ok = s.guess(ctx, name); !ok {
				// The library answers that there is no such tool.
				s.road.RefusedEarly(ctx, string(mcp.MethodToolsCall), callargs.Read(req.Params.RawArguments), toolerr.New(toolerr.CodeNotFound, "", "there is no tool %q", safetext.Shorten(name, toolerr.MaxQuoted)))
				return
			}
		case 1:
			ref = found[0]
		default:
			ref = enabled.Ref{Tool: name} // which call_tool refuses
		}
	}
	to := renamed{pack: ref.Pack, tool: ref.Tool}
	if m := req.Params.Meta; m != nil {
		to.workspace, _ = m.AdditionalFields[calls.WorkspaceKey].(string)
	}
	req.Params.Name, req.Params.Arguments = s.exposed(toolname.Call), to
	spans.From(ctx).Tool(spoken)
}

// baseNamed returns the plain name of the base tool that a name means; empty if there
// is none.
func (s *Server) baseNamed(name string) string {
	if s.base[toolname.Plain(name)] != nil {
		return toolname.Plain(name)
	}
	for rest := range toolname.WithoutPrefix(name) {
		if s.base[toolname.Plain(rest)] != nil {
			return toolname.Plain(rest)
		}
	}
	return ""
}

// guess finds the pack's tool that was meant by a name that is not enabled, so that
// the answer can say what to do.
func (s *Server) guess(ctx context.Context, name string) (packID, tool string, ok bool) {
	prefix, tool, ok := strings.Cut(name, "__")
	if !ok || tool == "" {
		return "", "", false
	}
	p, err := s.chats.Catalog(ctx).Lookup(prefix)
	if err != nil {
		return "", "", false
	}
	return p.ID, tool, true
}
