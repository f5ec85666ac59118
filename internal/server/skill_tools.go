package server

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A skillTool is an attached pack as a tool of its own, SKILL(arguments), which is
// open_docs with these arguments (specs/skillkit.md, FR-029 to FR-035).
type skillTool struct {
	name string
	pack *packs.Pack
}

// skillTools are those of a chat, by the ids of the packs, at most as many as the
// tools that a chat may enable. There are none unless the configuration exposes
// skills. A name that a tool of the chat, or an earlier pack, has gets a hash.
func (s *Server) skillTools(catalog *packs.Catalog, c *chat) []skillTool {
	if !s.opts.Skills {
		return nil
	}
	used := make(map[string]bool)
	taken := func(folded string) bool {
		return used[folded] || strings.HasPrefix(folded, basePrefix) || c != nil && c.taken(folded)
	}
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	var all []skillTool
	for _, p := range s.listedPacks(catalog) {
		if !s.mayOpen(p) {
			continue
		}
		if len(all) == s.limits.EnabledTools {
			break
		}
		name := shortName(promptName(p.ID), p.ID, taken)
		used[foldName(name)] = true
		all = append(all, skillTool{name, p})
	}
	return all
}

// skillInput is portable: one text, which may be left out.
const skillInput = `{"type":"object","properties":{"arguments":{"type":"string","description":"what to apply the skill to"}},"additionalProperties":false}`

// listedSkill is how a client sees the tool.
func (s *Server) listedSkill(t skillTool) mcp.Tool {
	title := shorten(safetext.Line(t.pack.Name), maxListLine)
	return mcp.Tool{
		Name: t.name, Title: title, Description: s.describe(t.pack.Description), Annotations: readOnly(title),
		RawInputSchema: json.RawMessage(skillInput), RawOutputSchema: json.RawMessage(s.base[toolOpenDocs].output),
	}
}

// skillCall returns the arguments of open_docs for a call of a pack's own tool; ok
// is false when no pack has one of this name. What else the call has is refused
// there, as it is for open_docs.
func (s *Server) skillCall(catalog *packs.Catalog, c *chat, name string, args json.RawMessage) (_ json.RawMessage, ok bool) {
	all := s.skillTools(catalog, c)
	i := slices.IndexFunc(all, func(t skillTool) bool { return t.name == name })
	if i < 0 {
		return nil, false
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal(args, &fields); err != nil {
		return args, true // open_docs says what is wrong
	}
	if fields["arguments"] == nil || string(fields["arguments"]) == "null" {
		fields["arguments"] = json.RawMessage(`""`)
	}
	id, err := json.Marshal(all[i].pack.ID)
	if err != nil {
		return nil, false
	}
	fields["pack_id"] = id
	out, err := json.Marshal(fields)
	return out, err == nil
}
