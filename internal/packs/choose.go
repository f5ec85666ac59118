package packs

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
)

// With returns the same packs with other ones attached: what set attaches is,
// and what it detaches is not, whatever c says. An entry counts for its own
// directory only. The packs' other facts are those of c.
func (c *Catalog) With(set attach.Set) *Catalog {
	if len(set.Attached)+len(set.Detached) == 0 {
		return c
	}
	out := &Catalog{packs: slices.Clone(c.packs), problems: c.problems}
	for i, p := range out.packs {
		on, since := p.Attached, p.AttachedSince
		if e, ok := set.Attached[p.ID]; ok && e.Dir == p.Dir {
			on, since = true, e.Since
		} else if set.IsDetached(p.ID) {
			on = false
		}
		if on == p.Attached && since.Equal(p.AttachedSince) {
			continue
		}
		other := *p
		other.Attached, other.AttachedSince = on, since
		out.packs[i] = &other
	}
	return out
}
