package enabled

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// Options are what a [Resolver] is made of. All are required.
type Options struct {
	Offer *offer.Offer
	Tools *toolfiles.Files // the tools of packs
	Most  int              // tools that a chat may have in use
}

// A Resolver finds out which enabled tools exist, and which tool a name means. It is
// safe for concurrent use.
type Resolver struct{ opts Options }

// NewResolver returns a Resolver.
func NewResolver(o Options) *Resolver { return &Resolver{o} }

// InUse returns the enabled tools of a chat that exist now: those of attached packs
// that still declare them, at most as many as clients can handle. If attaching a
// pack, or repairing its file, brings back more, the tools that were enabled last
// stay. offered returns the tools of a pack; nil: none.
func (r *Resolver) InUse(catalog *packs.Catalog, t *Tools, offered func(*packs.Pack) *tools.Set) map[string]map[string]string {
	sets := make(map[string]*tools.Set)
	out := make(map[string]map[string]string) // :: pack → declared name → listed name
	room := r.opts.Most
	for _, e := range t.newestFirst() {
		set, looked := sets[e.Pack]
		if !looked {
			if pack, err := r.opts.Offer.Pack(catalog, e.Pack); err == nil && pack.ID == e.Pack {
				set = offered(pack)
			}
			sets[e.Pack] = set
		}
		if tool := set.Lookup(e.Tool); tool == nil || tool.Name != e.Tool || tool.Command == nil || room == 0 {
			continue
		}
		room--
		if out[e.Pack] == nil {
			out[e.Pack] = make(map[string]string)
		}
		out[e.Pack][e.Tool] = e.Name
	}
	return out
}

// InUseNow is InUse with the files of packs as they are now.
func (r *Resolver) InUseNow(catalog *packs.Catalog, t *Tools) map[string]map[string]string {
	return r.InUse(catalog, t, func(p *packs.Pack) *tools.Set {
		set, _, err := r.opts.Tools.Offered(p)
		if err != nil {
			return nil
		}
		return set
	})
}

// IsOn reports whether a declared tool of a pack may be called.
func (r *Resolver) IsOn(catalog *packs.Catalog, t *Tools, packID, tool string) bool {
	return t.IsOn(packID, tool) && r.InUseNow(catalog, t)[packID][tool] != ""
}

// Names returns the listed names of a pack's tools that are in use, sorted.
func (r *Resolver) Names(catalog *packs.Catalog, t *Tools, packID string) []string {
	if !t.Knows(packID) {
		return nil
	}
	return slices.Sorted(maps.Values(r.InUseNow(catalog, t)[packID]))
}

// RoomFor makes sure that a chat does not get more tools than clients can handle.
func (r *Resolver) RoomFor(catalog *packs.Catalog, t *Tools, packID string, names []string) error {
	now := r.InUseNow(catalog, t)
	have, others := 0, []string{}
	for id, names := range now {
		have += len(names)
		if id != packID {
			others = append(others, fmt.Sprintf("%s (%d)", id, len(names)))
		}
	}
	more := 0
	for _, n := range names {
		if now[packID][n] == "" {
			more++
		}
	}
	if have+more <= r.opts.Most {
		return nil
	}
	var hint []string
	if room := r.opts.Most - have; room > 0 {
		hint = append(hint, fmt.Sprintf("Enable a part of them: pass tools with at most %d names.", room))
	}
	if len(others) > 0 {
		slices.Sort(others)
		hint = append(hint, "Disable those of a pack that you need no more, with tools: [], or ask the user to detach it: "+strings.Join(others, ", ")+".")
	}
	if len(hint) == 0 {
		hint = append(hint, "Disable those of this pack first, with tools: [], and then enable the ones that you need.")
	}
	return toolerr.New(toolerr.CodeToolListTooLarge, strings.Join(hint, " "), "%d tools are enabled and %d more would pass the limit of %d", have, more, r.opts.Most)
}
