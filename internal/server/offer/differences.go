package offer

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// ListsDiffer reports whether two Catalogs give different lists of prompts and of
// resources. It does not render packs whose list entries cannot differ: an edit
// concerns one pack of thousands.
func (o *Offer) ListsDiffer(before, now *packs.Catalog) (prompts, resources bool) {
	a, b := before.Attached(), now.Attached()
	if len(a) == len(b) {
		same := true
		for i := 0; i < len(a) && same; i++ {
			if looksSame(a[i], b[i]) {
				continue
			}
			if same = sameKeys(a[i], b[i]); same && o.MayOpen(b[i]) {
				prompts = prompts || invocable(b[i]) && o.promptsDiffer(Entry{Pack: a[i]}, Entry{Pack: b[i]})
				resources = resources || address.IsOffered(b[i]) && o.resourcesDiffer(Entry{Pack: a[i]}, Entry{Pack: b[i]})
			}
		}
		if same {
			return prompts, resources
		}
	}
	// Packs came or went, or another set of packs has a prompt or a document. The
	// name of each one depends on the others.
	return !slices.EqualFunc(o.Prompts(before), o.Prompts(now), func(a, b Entry) bool {
			return a.Key == b.Key && (samePack(a, b) || !o.promptsDiffer(a, b))
		}), !slices.EqualFunc(o.Documents(before), o.Documents(now), func(a, b Entry) bool {
			return a.Key == b.Key && (samePack(a, b) || !o.resourcesDiffer(a, b))
		})
}

func (o *Offer) promptsDiffer(a, b Entry) bool {
	return !slices.Equal(Print(o.AsPrompts([]Entry{a})), Print(o.AsPrompts([]Entry{b})))
}

func (o *Offer) resourcesDiffer(a, b Entry) bool {
	return !slices.Equal(Print(o.AsResources([]Entry{a})), Print(o.AsResources([]Entry{b})))
}

// samePack reports whether two entries have the same list data. The pack of an entry
// may be nil.
func samePack(a, b Entry) bool {
	return a.Pack == b.Pack || a.Pack != nil && b.Pack != nil && looksSame(a.Pack, b.Pack)
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

// Print returns a digest of a list as it is sent to a client, or nil if the list
// cannot be encoded.
func Print(list any) []byte {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}
