package server

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// listsDiffer reports whether two Catalogs give different lists of prompts and of
// resources. It does not render packs whose list entries cannot differ: an edit
// concerns one pack of thousands.
func (s *Server) listsDiffer(before, now *packs.Catalog) (prompts, resources bool) {
	a, b := before.Attached(), now.Attached()
	if len(a) == len(b) {
		same := true
		for i := 0; i < len(a) && same; i++ {
			if looksSame(a[i], b[i]) {
				continue
			}
			if same = sameKeys(a[i], b[i]); same && s.mayOpen(b[i]) {
				prompts = prompts || invocable(b[i]) && s.promptsDiffer(keyed{pack: a[i]}, keyed{pack: b[i]})
				resources = resources || address.IsOffered(b[i]) && s.resourcesDiffer(keyed{pack: a[i]}, keyed{pack: b[i]})
			}
		}
		if same {
			return prompts, resources
		}
	}
	// Packs came or went, or another set of packs has a prompt or a document. The
	// name of each one depends on the others.
	return !slices.EqualFunc(s.listedPrompts(before), s.listedPrompts(now), func(a, b keyed) bool {
			return a.key == b.key && (samePack(a, b) || !s.promptsDiffer(a, b))
		}), !slices.EqualFunc(s.listedDocuments(before), s.listedDocuments(now), func(a, b keyed) bool {
			return a.key == b.key && (samePack(a, b) || !s.resourcesDiffer(a, b))
		})
}

func (s *Server) promptsDiffer(a, b keyed) bool {
	return !slices.Equal(printOf(s.prompts([]keyed{a})), printOf(s.prompts([]keyed{b})))
}

func (s *Server) resourcesDiffer(a, b keyed) bool {
	return !slices.Equal(printOf(s.resources([]keyed{a})), printOf(s.resources([]keyed{b})))
}

// samePack reports whether two entries have the same list data. The pack of an entry
// may be nil.
func samePack(a, b keyed) bool {
	return a.pack == b.pack || a.pack != nil && b.pack != nil && looksSame(a.pack, b.pack)
}

// looksSame reports whether two packs are the same in everything that lists of
// prompts and resources depend on.
func looksSame(a, b *packs.Pack) bool {
	return a == b || a.ID == b.ID && a.Name == b.Name && a.Description == b.Description && a.Entry == b.Entry && a.Loose == b.Loose &&
		(a.Frontmatter == b.Frontmatter || a.Frontmatter.ArgumentHint() == b.Frontmatter.ArgumentHint() && address.IsOffered(a) == address.IsOffered(b) && invocable(a) == invocable(b)) &&
		slices.Equal(a.Problems, b.Problems)
}

// sameKeys reports whether two packs are in the same lists and sort the same, as long
// as all other packs stay the same. (A document's URI is part of its list entry.)
func sameKeys(a, b *packs.Pack) bool {
	return a.ID == b.ID && address.IsOffered(a) == address.IsOffered(b) && invocable(a) == invocable(b)
}
