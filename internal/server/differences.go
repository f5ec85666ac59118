package server

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// listsDiffer reports whether two Catalogs give different lists of prompts and of
// resources. Packs of which a list says the same are not shown to find that out:
// an edit concerns one of thousands.
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
	// Other packs, or others that have a prompt or a document: what each is called
	// depends on the rest of them.
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

// samePack reports whether lists say the same of two packs, or of what is none.
func samePack(a, b keyed) bool {
	return a.pack == b.pack || a.pack != nil && b.pack != nil && looksSame(a.pack, b.pack)
}

// looksSame reports whether two packs have the same in everything that lists of
// prompts and resources go by.
func looksSame(a, b *packs.Pack) bool {
	return a == b || a.ID == b.ID && a.Name == b.Name && a.Description == b.Description && a.Entry == b.Entry && a.Loose == b.Loose &&
		(a.Frontmatter == b.Frontmatter || a.Frontmatter.ArgumentHint() == b.Frontmatter.ArgumentHint() && address.IsOffered(a) == address.IsOffered(b) && invocable(a) == invocable(b)) &&
		slices.Equal(a.Problems, b.Problems)
}

// sameKeys reports whether two packs are in the same lists and sorted the same, as
// long as all others are. (A document's URI is part of what is shown of it.)
func sameKeys(a, b *packs.Pack) bool {
	return a.ID == b.ID && address.IsOffered(a) == address.IsOffered(b) && invocable(a) == invocable(b)
}
