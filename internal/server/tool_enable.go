package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

const toolEnable = basePrefix + "enable_tools"

// maxNamed is how many tools one call may name; a pack has no more by default.
const maxNamed = 200

type enableParams struct {
	PackID string   `json:"pack_id"`
	Tools  []string `json:"tools"`
}

type enableResult struct {
	Enabled bool          `json:"enabled"`
	Tools   []enabledTool `json:"tools"`
	// NotExecutable are tools that the pack only declares.
	NotExecutable []declaredTool `json:"not_executable,omitempty"`
}

type enabledTool struct {
	Name        string `json:"name"`
	Tool        string `json:"tool"`
	Description string `json:"description"`
	Signature   string `json:"signature"`
}

type declaredTool struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// An enabledPack is what a chat may call of one pack. Names are given when a
// tool is enabled and stay, so that a list never renames a tool under a client.
type enabledPack struct {
	names map[string]string // :: declared name → listed name
}

func enableTool() *baseTool {
	no, yes := false, true
	return &baseTool{
		name:  toolEnable,
		title: "Enable a pack's tools",
		description: fixed("Make a pack's tools callable in this chat and get their signatures. " +
			"They appear as tools of their own, PACK__TOOL, and can be called with call_tool in any case."),
		input: `{"type":"object","properties":{"pack_id":{"type":"string"},` +
			`"tools":{"type":"array","items":{"type":"string"},"description":"only these"}},` +
			`"required":["pack_id"],"additionalProperties":false}`,
		output: `{"type":"object","properties":{"enabled":{"type":"boolean"},"tools":{"type":"array","items":{"type":"object","properties":{` +
			`"name":{"type":"string"},"tool":{"type":"string"},"description":{"type":"string"},"signature":{"type":"string"}},"required":["name","tool","description","signature"]}},` +
			`"not_executable":{"type":"array","items":{"type":"object","properties":{"tool":{"type":"string"},"reason":{"type":"string"}},"required":["tool","reason"]}},` + errorProperty + `}}`,
		annotations: mcp.ToolAnnotation{Title: "Enable a pack's tools", ReadOnlyHint: &no, DestructiveHint: &no, IdempotentHint: &yes, OpenWorldHint: &no},
		prepare:     (*Server).prepareEnable,
	}
}

func (s *Server) prepareEnable(ctx context.Context, c *call) (*action, error) {
	var p enableParams
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	if err := c.requireText("pack_id", p.PackID); err != nil {
		return nil, err
	}
	if len(p.Tools) > maxNamed {
		return nil, failf(codeInvalidArguments, "Name fewer, or leave tools out for all.", "%d tools are named, and a pack has at most %d", len(p.Tools), maxNamed)
	}
	pack, err := s.pack(c, p.PackID)
	if err != nil {
		return nil, err
	}
	facts, err := s.facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	set, err := s.toolSet(pack)
	if err != nil {
		return nil, err
	}
	chosen, err := choose(set, p.Tools)
	if err != nil {
		return nil, err
	}
	// Tools that are only declared take no room, and nobody is asked for them.
	var names []string
	for _, t := range chosen {
		if t.Command != nil {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil, failf(codeNotExecutable, "Read the pack's documents for how its tools are meant to be used.",
			"pack %q only declares these tools; none has a command", pack.ID)
	}
	if err := s.roomFor(c, pack.ID, names); err != nil {
		return nil, err
	}
	return &action{
		request: gate.Request{
			Caller: c.caller, Kind: gate.KindEnable, Method: c.tool.name, Pack: facts,
			Tools: names, Hidden: hiddenInTools(chosen), Arguments: c.args, Logged: redactExec(c.args, s.secrets),
		},
		perform: func(ctx context.Context, permit *gate.Permit) (any, error) {
			if err := s.sameAs(ctx, c, pack, permit, false); err != nil {
				return nil, err
			}
			return s.enable(c, pack, chosen), nil
		},
	}, nil
}

// hiddenInTools says how many invisible characters the model would get with the
// schemas of tools; empty for none. Texts are escaped, but not the values that a
// call is held against.
func hiddenInTools(chosen []*tools.Tool) string {
	var all []byte
	for _, t := range chosen {
		if t.Command != nil {
			all = appendTexts(all, readable(t.PortableSchema()))
		}
	}
	return hiddenIn(all)
}

// appendTexts adds the strings and keys of a JSON value, as they are without
// JSON's escapes.
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

// toolSet returns the tools of a pack, or says why there are none.
func (s *Server) toolSet(pack *packs.Pack) (*tools.Set, error) {
	set, problems, err := s.files.Offered(pack)
	if err != nil {
		return nil, err
	}
	if set == nil && diag.HasErrors(problems) {
		e := failf(codeInvalidTools,
			"Tell the user, who can mend the file. Until then use the pack's documents, or capability_packs_exec_best_effort for one command.",
			"the tools of pack %q cannot be read", pack.ID)
		e.Problems = problems
		return nil, e
	}
	if set == nil || len(set.Tools) == 0 {
		return nil, failf(codeInvalidTools,
			"Use its documents and files; capability_packs_exec_best_effort can run one command.",
			"pack %q has no tools", pack.ID)
	}
	return set, nil
}

// choose returns the tools with the given names, or all.
func choose(set *tools.Set, names []string) ([]*tools.Tool, error) {
	if len(names) == 0 {
		return set.Tools, nil
	}
	var chosen []*tools.Tool
	for _, name := range names {
		t := set.Lookup(name)
		if t == nil {
			e := failf(codeInvalidArguments, "Name tools as the pack declares them, or leave tools out for all.", "the pack has no tool %q", name)
			e.Near = nearTools(name, set)
			return nil, e
		}
		if !slices.Contains(chosen, t) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

// roomFor makes sure that a chat does not get more tools than clients bear.
// Packs that were detached since are not listed, and do not count.
func (s *Server) roomFor(cl *call, packID string, names []string) error {
	c := cl.chat
	c.mu.Lock()
	defer c.mu.Unlock()
	have, others := 0, []string{}
	for id, p := range c.enabled {
		if _, err := s.pack(cl, id); err != nil {
			continue
		}
		have += len(p.names)
		if id != packID {
			others = append(others, fmt.Sprintf("%s (%d)", id, len(p.names)))
		}
	}
	more := 0
	for _, n := range names {
		if p := c.enabled[packID]; p == nil || p.names[n] == "" {
			more++
		}
	}
	if have+more <= s.limits.EnabledTools {
		return nil
	}
	slices.Sort(others)
	hint := fmt.Sprintf("Enable a part of them: pass tools with at most %d names.", s.limits.EnabledTools-have)
	if len(others) > 0 {
		hint += " Or ask the user to detach a pack: " + strings.Join(others, ", ") + "."
	}
	return failf(codeToolListTooLarge, hint, "%d tools are enabled and %d more would pass the limit of %d", have, more, s.limits.EnabledTools)
}

// enable gives the chat the chosen tools, and tells its client when its list
// differs.
func (s *Server) enable(cl *call, pack *packs.Pack, chosen []*tools.Tool) *enableResult {
	out := &enableResult{Enabled: true, Tools: []enabledTool{}}
	c := cl.chat
	c.mu.Lock()
	changed := false
	p := c.enabled[pack.ID]
	if p == nil {
		p = &enabledPack{names: make(map[string]string)}
	}
	for _, t := range chosen {
		if t.Command == nil {
			out.NotExecutable = append(out.NotExecutable, declaredTool{Tool: t.Name, Reason: safetext.Line(t.DeclaredOnly)})
			continue
		}
		if p.names[t.Name] == "" {
			p.names[t.Name] = packToolName(pack.ID, t.Name, c.taken)
			changed = true
			// In the map at once: the next name must differ from this one.
			c.enabled[pack.ID] = p
		}
		out.Tools = append(out.Tools, enabledTool{
			Name: p.names[t.Name], Tool: t.Name,
			Description: s.describe(t.DescriptionFor(s.knownContext(), s.limits.Description)), Signature: safetext.Line(t.Signature()),
		})
	}
	c.mu.Unlock()
	if changed {
		c.setListed(s.toolsPrint(cl.catalog, c))
		c.tell(note{method: toolsChanged})
	}
	return out
}

// taken reports whether a listed name is used in this chat. The caller holds
// the lock.
func (c *chat) taken(folded string) bool {
	if strings.HasPrefix(folded, basePrefix) {
		return true // looks like one of ours
	}
	for _, p := range c.enabled {
		for _, name := range p.names {
			if foldName(name) == folded {
				return true
			}
		}
	}
	return false
}

// enabledNames returns the listed names of a pack's enabled tools, sorted.
func (c *chat) enabledNames(packID string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	if p := c.enabled[packID]; p != nil {
		for _, name := range p.names {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// find returns the pack and the declared name behind a listed one.
func (c *chat) find(listed string) (packID, tool string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, p := range c.enabled {
		for declared, name := range p.names {
			if name == listed {
				return id, declared, true
			}
		}
	}
	return "", "", false
}

// isEnabled reports whether a declared tool of a pack may be called.
func (c *chat) isEnabled(packID, tool string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.enabled[packID]
	return p != nil && p.names[tool] != ""
}
