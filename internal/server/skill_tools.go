package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// A skillTool is an attached pack as a tool of its own, SKILL(arguments), which does
// what open_docs does with these arguments (specs/skillkit.md, FR-029 to FR-035).
type skillTool struct {
	name string
	pack *packs.Pack
}

// skillTools returns the skills of a chat, by the ids of the packs. There are none
// unless the configuration exposes skills. A skill whose name is already that of a
// tool of the chat, or of an earlier pack, gets a hash.
func (s *Server) skillTools(catalog *packs.Catalog, c *chats.Chat) []skillTool {
	if !s.opts.Skills {
		return nil
	}
	used := make(map[string]bool)
	taken := func(folded string) bool {
		return used[folded] || strings.HasPrefix(folded, toolname.Prefix) || c != nil && c.Enabled.Taken(folded)
	}
	listed, _ := s.offer.OwnTools(catalog, s.limits.EnabledTools)
	all := make([]skillTool, 0, len(listed))
	for _, p := range listed {
		name := toolname.Short(offer.PromptName(p.ID), p.ID, taken)
		used[toolname.Fold(name)] = true
		all = append(all, skillTool{name, p})
	}
	return all
}

// skillInput is a schema that every client accepts: one text, which may be left out.
const skillInput = `{"type":"object","properties":{"arguments":{"type":"string","description":"what to apply the skill to"}},"additionalProperties":false}`

// listedSkill returns the tool as a client sees it.
func (s *Server) listedSkill(t skillTool) mcp.Tool {
	title := safetext.Shorten(safetext.Line(t.pack.Name), maxListLine)
	return mcp.Tool{
		Name: t.name, Title: title, Description: s.offer.Describe(t.pack.Description), Annotations: readOnly(title),
		RawInputSchema: json.RawMessage(skillInput), RawOutputSchema: json.RawMessage(s.base[toolname.OpenDocs].output),
	}
}

// asSkill turns a call of a pack's own tool into a call of open_docs. It reports
// false, and changes nothing, if no pack has a tool of this name.
func (s *Server) asSkill(ctx context.Context, c *chats.Chat, name string, req *mcp.CallToolRequest) bool {
	all := s.skillTools(c.Catalog(ctx), c)
	i := slices.IndexFunc(all, func(t skillTool) bool { return t.name == name })
	if i < 0 {
		return false
	}
	req.Params.Name, req.Params.Arguments = s.exposed(toolname.OpenDocs), renamed{skill: all[i].pack.ID}
	spans.From(ctx).Tool(name)
	return true
}

// openSkillTool returns open_docs for one pack, with the arguments of its own tool.
// Errors about these arguments refer to that tool's schema.
func openSkillTool(packID string, args *callargs.Arguments) *baseTool {
	t := &baseTool{name: toolname.OpenDocs, input: skillInput}
	t.prepare = func(s *Server, ctx context.Context, c *calls.Call) (*calls.Action, error) {
		var p struct {
			Arguments string `json:"arguments"`
		}
		if err := (&calls.Call{Method: s.method(t), Args: args}).Decode(&p); err != nil {
			return nil, err
		}
		act, err := s.openDocs(ctx, c, &openDocsParams{PackID: packID, Arguments: &p.Arguments})
		if err != nil {
			return nil, err
		}
		open := act.Perform
		act.Perform = func(ctx context.Context, permit *gate.Permit) (any, error) {
			out, err := open(ctx, permit)
			if docs, ok := out.(openDocsResult); ok && docs.EntryDoc.Truncated {
				more := fmt.Sprintf("For the rest, call %s with pack_id %q, the same arguments, and next_offset as offset.", s.exposed(toolname.OpenDocs), packID)
				docs.EntryDoc.Note = strings.TrimSpace(docs.EntryDoc.Note + " " + more)
				out = docs
			}
			return out, err
		}
		return act, nil
	}
	return t
}
