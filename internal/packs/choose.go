package packs

import (
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
)

// With returns a Catalog of the same packs in which set overrides what c says about
// which are attached. An entry counts for its own directory only. Everything else
// about the packs stays as in c.
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

// stored returns a Catalog of the same packs, attached as the stored set says, as far
// as that can be told without the roots. A pack that a person had attached, and that is
// no longer in set, counts as detached here, although its root may attach it.
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
