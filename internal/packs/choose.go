package packs

import (
	"slices"
	"time"

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

// stored returns the same packs as the set of what is stored makes them, as far as
// that can be told without the roots: what was attached by it and is no longer is
// not, though a root may attach it.
func (c *Catalog) stored(set attach.Set) *Catalog {
	out := &Catalog{packs: slices.Clone(c.packs), problems: c.problems}
	for i, p := range out.packs {
		other := *p
		e, ok := set.Attached[p.ID]
		switch {
		case ok && e.Dir == p.Dir:
			other.Attached, other.AttachedSince = true, e.Since
			if e.Trust != "" {
				other.Trust = Trust(e.Trust).normal()
			}
		case set.IsDetached(p.ID), !p.AttachedSince.IsZero():
			other.Attached, other.AttachedSince = false, time.Time{}
		default:
			continue
		}
		out.packs[i] = &other
	}
	return out
}
