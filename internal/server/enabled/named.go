package enabled

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/finder"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// Named returns the tools of packs that a name may mean in a chat. It tries the
// listed name, PACK__TOOL of an attached pack, either of these behind a client's
// prefix, and the name that the pack declares. The first of these that matches
// counts, and it may match several tools.
func (r *Resolver) Named(catalog *packs.Catalog, t *Tools, name string) []Ref {
	if ref, ok := t.Listed(name); ok {
		return []Ref{ref}
	}
	if found := r.qualified(catalog, t, name); len(found) > 0 {
		return found
	}
	var found []Ref
	add := func(refs ...Ref) {
		for _, ref := range refs {
			if !slices.Contains(found, ref) {
				found = append(found, ref)
			}
		}
	}
	for rest := range toolname.WithoutPrefix(name) {
		if ref, ok := t.Listed(rest); ok {
			add(ref)
		}
	}
	for rest, certain := range toolname.WithoutPrefix(name) {
		if certain && len(found) == 0 {
			add(r.qualified(catalog, t, rest)...)
		}
	}
	if len(found) > 0 {
		return found
	}
	if found = r.declaredAs(catalog, t, name); len(found) > 0 {
		return found
	}
	for rest, certain := range toolname.WithoutPrefix(name) {
		// The part before any other "__" is the name of a pack that does not exist.
		if certain && toolname.IsOurs(name) && len(found) == 0 {
			add(r.declaredAs(catalog, t, rest)...)
		}
	}
	return found
}

// qualified returns the tools that PACK__TOOL may mean. PACK is an attached pack's
// id, the end of its id, or its name, with "__" for "/".
func (r *Resolver) qualified(catalog *packs.Catalog, t *Tools, name string) (found []Ref) {
	for at := 0; ; at++ {
		i := strings.Index(name[at:], "__")
		if i < 0 {
			return found
		}
		at += i
		pack, tool := name[:at], name[at+2:]
		if pack == "" || tool == "" {
			continue
		}
		for _, id := range []string{pack, strings.ReplaceAll(pack, "__", "/")} {
			var ids []string
			p, err := catalog.LookupAttached(id)
			if several, ok := errors.AsType[*packs.AmbiguousError](err); ok {
				ids = several.Matches
			} else if err == nil {
				ids = []string{p.ID}
			}
			for _, id := range ids {
				p := catalog.ByID(id)
				if p == nil || !r.opts.Offer.IsForModels(p) {
					continue
				}
				if ref, ok := r.refTo(t, p, tool); ok && !slices.Contains(found, ref) {
					found = append(found, ref)
				}
			}
		}
	}
}

// declaredAs returns the tools that packs declare under this name: those that are
// enabled in the chat or, if there are none, those of attached packs.
func (r *Resolver) declaredAs(catalog *packs.Catalog, t *Tools, name string) (found []Ref) {
	all := r.opts.Offer.Packs(catalog)
	if len(all) > finder.MaxLoaded {
		all = slices.DeleteFunc(all, func(p *packs.Pack) bool { return !t.Knows(p.ID) })
	}
	enabled := false
	for _, p := range all {
		ref, ok := r.refTo(t, p, name)
		if !ok || !r.opts.Offer.IsForModels(p) {
			continue
		}
		on := r.IsOn(catalog, t, p.ID, ref.Tool)
		switch {
		case on && !enabled:
			enabled, found = true, []Ref{ref}
		case on == enabled:
			found = append(found, ref)
		}
	}
	return found
}

// refTo returns the tool that a pack declares under a name.
func (r *Resolver) refTo(t *Tools, p *packs.Pack, name string) (Ref, bool) {
	set, _, err := r.opts.Tools.Offered(p)
	if err != nil {
		return Ref{}, false
	}
	tool := set.Lookup(name)
	if tool == nil {
		return Ref{}, false
	}
	listed := t.nameOf(p.ID, tool.Name)
	if listed == "" {
		listed = strings.ReplaceAll(p.ID, "/", "__") + "__" + tool.Name
	}
	return Ref{p.ID, tool.Name, listed}, true
}

// maxNear is how many names an error offers.
const maxNear = 5

// nearest returns the names of a pack's tools that somebody may have meant. If none
// is similar, it returns some of the pack's tools.
func nearest(name string, set *tools.Set) []string {
	all := make([]string, len(set.Tools))
	for i, t := range set.Tools {
		all[i] = t.Name
	}
	if meant := near.Names(name, all, maxNear); len(meant) > 0 {
		return meant
	}
	return all[:min(len(all), maxNear)]
}

// One returns the tool that a name means in a chat. If there are several, the
// error lists them: nothing is guessed.
func One(name string, found []Ref) (Ref, error) {
	switch len(found) {
	case 0:
		return Ref{}, toolerr.New(toolerr.CodeNotFound, "Call capability_packs_enable_tools for a pack's tools, and pass its pack_id.", "there is no tool %q", name)
	case 1:
		return found[0], nil
	}
	e := toolerr.New(toolerr.CodeNotFound, "Call it by one of the names in near, or pass its pack_id.", "%q may be any of %d tools", name, len(found))
	for _, ref := range found[:min(len(found), maxNear)] {
		e.Near = append(e.Near, ref.Name)
	}
	if more := len(found) - len(e.Near); more > 0 {
		e.Message += fmt.Sprintf(", %d of which are named", len(e.Near))
	}
	return Ref{}, e
}
