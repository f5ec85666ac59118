package server

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// What a rule forbids altogether is not offered, because the gate is not asked about
// the entries of a list. A pack about which everything is forbidden is in no list. A
// pack that may not be opened has no prompt and no document among the resources, and
// is not a skill. A pack whose files may not be read is not a skill either, since a
// skill's manifest lists their digests. A pack that may not be attached is not
// offered for attaching. A request that names any of these still goes to the gate,
// which denies it and records that.

// hides reports whether everything about a pack is forbidden.
func (s *Server) hides(p *packs.Pack) bool { return s.opts.Gate.Forbids("", p.ID) }

// mayAttach reports whether the prompt attach may be used for a pack.
func (s *Server) mayAttach(p *packs.Pack) bool { return !s.opts.Gate.Forbids(gate.KindAttach, p.ID) }

func (s *Server) mayOpen(p *packs.Pack) bool { return !s.opts.Gate.Forbids(gate.KindOpen, p.ID) }

func (s *Server) mayRead(p *packs.Pack) bool { return !s.opts.Gate.Forbids(gate.KindRead, p.ID) }

// mayReadWorkspaces reports whether files of workspaces may be read.
func (s *Server) mayReadWorkspaces() bool { return !s.opts.Gate.Forbids(gate.KindRead, workspaceID) }

// showsFiles reports whether the list of all of a pack's files, with their digests,
// may be shown.
func (s *Server) showsFiles(p *packs.Pack) bool { return s.mayOpen(p) && s.mayRead(p) }

// mayGive reports whether no rule forbids a place.
func (s *Server) mayGive(at address.Place) bool {
	if at.Path == at.Pack.Entry {
		return s.mayOpen(at.Pack)
	}
	return s.mayRead(at.Pack)
}

// mayChoose reports whether a pack is offered as the argument of the prompt attach
// or detach.
func (s *Server) mayChoose(prompt string, p *packs.Pack) bool {
	switch {
	case p.ShadowedBy != "":
		return false
	case prompt == promptDetach:
		return p.Attached && !s.hides(p)
	default:
		return !p.Attached && p.Valid && s.mayAttach(p)
	}
}

// listedPacks returns the packs that a model may know about.
func (s *Server) listedPacks(catalog *packs.Catalog) []*packs.Pack {
	return slices.DeleteFunc(offered(catalog), s.hides)
}

// listedDocuments returns documents without those that may not be opened.
func (s *Server) listedDocuments(catalog *packs.Catalog) []keyed {
	return slices.DeleteFunc(documents(catalog), func(d keyed) bool { return d.pack != nil && !s.mayOpen(d.pack) })
}

// listedPrompts returns prompts without those of packs that may not be opened.
func (s *Server) listedPrompts(catalog *packs.Catalog) []keyed {
	return slices.DeleteFunc(prompts(catalog), func(d keyed) bool { return d.pack != nil && !s.mayOpen(d.pack) })
}

// listedSkills returns the packs of a Catalog that are skills, sorted by the URIs of
// their documents, without those that rules hide.
func (s *Server) listedSkills(catalog *packs.Catalog) []*packs.Pack {
	var all []*packs.Pack
	for _, d := range documents(catalog) {
		if d.pack != nil && address.IsSkill(d.pack) && s.showsFiles(d.pack) {
			all = append(all, d.pack)
		}
	}
	return all
}
