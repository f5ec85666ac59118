// Package enabled knows which tools of packs a chat has enabled, under which names,
// and which tool a client means by a name.
//
// It asks nobody: package gate decides whether tools are enabled, and whether one is
// called. It does not list tools as clients see them.
package enabled

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// A Ref is a pack's tool that a name may mean.
type Ref struct {
	Pack string // id
	Tool string // as declared
	Name string // as listed, or as it would be listed
}

// Tools are the tools that one chat has enabled. A tool gets its listed name when it
// is enabled and keeps it, even while it is disabled, so that a list never renames a
// tool while a client uses it. The zero value has none, and is ready. It is safe for
// concurrent use.
type Tools struct {
	mu    sync.Mutex
	packs map[string]map[string]*name // :: pack id → declared name → its name in lists
	count int                         // how many tools were enabled so far
}

// A name is a tool's name in the lists of a chat.
type name struct {
	listed string
	since  int // grows with each tool that is enabled; 0: disabled
}

// Any reports whether tools were ever enabled. They may be gone by now.
func (t *Tools) Any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.packs) > 0
}

// Knows reports whether tools of a pack were ever enabled.
func (t *Tools) Knows(packID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.packs[packID] != nil
}

// Enable enables tools of a pack, which has at least one with a command. inUse holds
// those that are in use, by their declared names; see [Resolver.InUse]. taken reports
// whether a folded name is taken by something else. Enable returns the listed names
// of the tools with a command, in the same order, and whether one was not in use.
func (t *Tools) Enable(packID string, chosen []*tools.Tool, inUse map[string]string, taken func(folded string) bool) (listed []string, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tool := range chosen {
		if tool.Command == nil {
			continue
		}
		n := t.packs[packID][tool.Name]
		if n == nil {
			n = &name{listed: toolname.OfPack(packID, tool.Name, func(folded string) bool { return taken(folded) || t.taken(folded) })}
			// Put it in the map now: the next name must differ from this one.
			if t.packs == nil {
				t.packs = make(map[string]map[string]*name)
			}
			if t.packs[packID] == nil {
				t.packs[packID] = make(map[string]*name)
			}
			t.packs[packID][tool.Name] = n
		}
		if inUse[tool.Name] == "" {
			t.count++
			n.since, changed = t.count, true
		}
		listed = append(listed, n.listed)
	}
	return listed, changed
}

// A Kept is a tool that was enabled in a chat, for other replicas.
type Kept struct {
	Pack   string `json:"pack"` // id
	Tool   string `json:"tool"` // as declared
	Listed string `json:"listed"`
	Since  int    `json:"since,omitempty"` // grows with each tool that is enabled; 0: disabled
}

// Kept returns all tools that were ever enabled, sorted.
func (t *Tools) Kept() (all []Kept) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, names := range t.packs {
		for tool, n := range names {
			all = append(all, Kept{id, tool, n.listed, n.since})
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return cmp.Or(strings.Compare(a.Pack, b.Pack), strings.Compare(a.Tool, b.Tool)) })
	return all
}

// Restore makes the tools those of which another replica, or an earlier call, returned
// Kept.
func (t *Tools) Restore(all []Kept) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.packs, t.count = nil, 0
	for _, k := range all {
		if t.packs == nil {
			t.packs = make(map[string]map[string]*name)
		}
		if t.packs[k.Pack] == nil {
			t.packs[k.Pack] = make(map[string]*name)
		}
		t.packs[k.Pack][k.Tool] = &name{k.Listed, k.Since}
		t.count = max(t.count, k.Since)
	}
}

// Disable disables all tools of a pack, and reports whether there were any.
func (t *Tools) Disable(packID string) (had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.packs[packID] {
		had = had || n.since > 0
		n.since = 0
	}
	return had
}

// Taken reports whether a folded name is one that a tool has in lists, or looks like
// one of ours.
func (t *Tools) Taken(folded string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken(folded)
}

// taken is Taken for a caller that holds the lock.
func (t *Tools) taken(folded string) bool {
	if strings.HasPrefix(folded, toolname.Prefix) {
		return true // it looks like one of ours
	}
	for _, names := range t.packs {
		for _, n := range names {
			if toolname.Fold(n.listed) == folded {
				return true
			}
		}
	}
	return false
}

// Listed returns the tool with this listed name. It may be disabled.
func (t *Tools) Listed(as string) (Ref, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, names := range t.packs {
		for declared, n := range names {
			if n.listed == as {
				return Ref{id, declared, as}, true
			}
		}
	}
	return Ref{}, false
}

// nameOf returns the listed name of a tool; empty if it never was enabled.
func (t *Tools) nameOf(packID, tool string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.packs[packID][tool]; n != nil {
		return n.listed
	}
	return ""
}

// IsOn reports whether a tool is enabled, whether or not it exists now.
func (t *Tools) IsOn(packID, tool string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.packs[packID][tool]
	return n != nil && n.since > 0
}

// An entry is an enabled tool.
type entry struct {
	Ref
	since int
}

// newestFirst returns the enabled tools; those that were enabled last come first.
func (t *Tools) newestFirst() []entry {
	t.mu.Lock()
	var all []entry
	for id, names := range t.packs {
		for tool, n := range names {
			if n.since > 0 {
				all = append(all, entry{Ref{id, tool, n.listed}, n.since})
			}
		}
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b entry) int { return b.since - a.since })
	return all
}
