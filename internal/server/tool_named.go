package server

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

// A toolRef is a pack's tool that a name may mean.
type toolRef struct {
	pack string // id
	tool string // as declared
	name string // as listed, or as it would be listed
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

// toolsNamed returns the tools of packs that a name may mean in a chat. It tries the
// listed name, PACK__TOOL of an attached pack, either of these behind a client's
// prefix, and the name that the pack declares. The first of these that matches
// counts, and it may match several tools.
func (s *Server) toolsNamed(catalog *packs.Catalog, c *chat, name string) []toolRef {
	if ref, ok := c.listedAs(name); ok {
		return []toolRef{ref}
	}
	if found := s.qualified(catalog, c, name); len(found) > 0 {
		return found
	}
	var found []toolRef
	add := func(refs ...toolRef) {
		for _, ref := range refs {
			if !slices.Contains(found, ref) {
				found = append(found, ref)
			}
		}
	}
	for rest := range toolname.WithoutPrefix(name) {
		if ref, ok := c.listedAs(rest); ok {
			add(ref)
		}
	}
	for rest, certain := range toolname.WithoutPrefix(name) {
		if certain && len(found) == 0 {
			add(s.qualified(catalog, c, rest)...)
		}
	}
	if len(found) > 0 {
		return found
	}
	if found = s.declaredAs(catalog, c, name); len(found) > 0 {
		return found
	}
	for rest, certain := range toolname.WithoutPrefix(name) {
		// The part before any other "__" is the name of a pack that does not exist.
		if certain && toolname.IsOurs(name) && len(found) == 0 {
			add(s.declaredAs(catalog, c, rest)...)
		}
	}
	return found
}

// listedAs returns the enabled tool with this listed name.
func (c *chat) listedAs(name string) (toolRef, bool) {
	pack, tool, ok := c.find(name)
	return toolRef{pack, tool, name}, ok
}

// qualified returns the tools that PACK__TOOL may mean. PACK is an attached pack's
// id, the end of its id, or its name, with "__" for "/".
func (s *Server) qualified(catalog *packs.Catalog, c *chat, name string) (found []toolRef) {
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
				if p == nil || !s.offer.IsForModels(p) {
					continue
				}
				if ref, ok := s.refTo(c, p, tool); ok && !slices.Contains(found, ref) {
					found = append(found, ref)
				}
			}
		}
	}
}

// declaredAs returns the tools that packs declare under this name: those that are
// enabled in the chat or, if there are none, those of attached packs.
func (s *Server) declaredAs(catalog *packs.Catalog, c *chat, name string) (found []toolRef) {
	all := s.offer.Packs(catalog)
	if len(all) > finder.MaxLoaded {
		all = slices.DeleteFunc(all, func(p *packs.Pack) bool { return !c.knowsTools(p.ID) })
	}
	enabled := false
	for _, p := range all {
		ref, ok := s.refTo(c, p, name)
		if !ok || !s.offer.IsForModels(p) {
			continue
		}
		on := s.isEnabled(&call{catalog: catalog, chat: c}, p.ID, ref.tool)
		switch {
		case on && !enabled:
			enabled, found = true, []toolRef{ref}
		case on == enabled:
			found = append(found, ref)
		}
	}
	return found
}

// refTo returns the tool that a pack declares under a name.
func (s *Server) refTo(c *chat, p *packs.Pack, name string) (toolRef, bool) {
	set, _, err := s.files.Offered(p)
	if err != nil {
		return toolRef{}, false
	}
	t := set.Lookup(name)
	if t == nil {
		return toolRef{}, false
	}
	listed := c.nameOf(p.ID, t.Name)
	if listed == "" {
		listed = strings.ReplaceAll(p.ID, "/", "__") + "__" + t.Name
	}
	return toolRef{p.ID, t.Name, listed}, true
}

// nameOf returns the listed name of an enabled tool; empty for others.
func (c *chat) nameOf(packID, tool string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.enabled[packID]; p != nil && p.tools[tool] != nil {
		return p.tools[tool].listed
	}
	return ""
}

// maxNearTools is how many names an error offers.
const maxNearTools = 5

// nearTools returns the names of a pack's tools that somebody may have meant. If none
// is similar, it returns some of the pack's tools.
func nearTools(name string, set *tools.Set) []string {
	all := make([]string, len(set.Tools))
	for i, t := range set.Tools {
		all[i] = t.Name
	}
	if meant := near.Names(name, all, maxNearTools); len(meant) > 0 {
		return meant
	}
	return all[:min(len(all), maxNearTools)]
}

// oneTool returns the tool that a name means in a chat. If there are several, the
// error lists them: nothing is guessed.
func oneTool(name string, found []toolRef) (toolRef, error) {
	switch len(found) {
	case 0:
		return toolRef{}, toolerr.New(toolerr.CodeNotFound, "Call capability_packs_enable_tools for a pack's tools, and pass its pack_id.", "there is no tool %q", name)
	case 1:
		return found[0], nil
	}
	e := toolerr.New(toolerr.CodeNotFound, "Call it by one of the names in near, or pass its pack_id.", "%q may be any of %d tools", name, len(found))
	for _, ref := range found[:min(len(found), maxNearTools)] {
		e.Near = append(e.Near, ref.name)
	}
	if more := len(found) - len(e.Near); more > 0 {
		e.Message += fmt.Sprintf(", %d of which are named", len(e.Near))
	}
	return toolRef{}, e
}
