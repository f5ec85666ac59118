package packs

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// modeGlobal is the default mode. A pack that lists it is offered in every mode, as
// is a pack that lists none.
const modeGlobal = "Global"

// nearIDs is how many ids an error suggests, and maxShownID how many characters of the
// id that was asked for it repeats.
const nearIDs, maxShownID = 3, 100

// A Catalog is what a scan found. It is immutable and safe for concurrent use.
type Catalog struct {
	packs    []*Pack // by id in lower case; among equal ids, the one that is not shadowed comes first
	problems []diag.Diagnostic
}

// All returns every pack, including invalid, shadowed and unattached ones, sorted by
// id. Among equal ids, the one that is not shadowed comes first.
func (c *Catalog) All() []*Pack { return slices.Clone(c.packs) }

// Attached returns the packs that exist for a model and its user: valid,
// attached, offered in this mode and not shadowed; sorted by id.
func (c *Catalog) Attached() []*Pack {
	return slices.DeleteFunc(slices.Clone(c.packs), func(p *Pack) bool { return !p.current() })
}

func (p *Pack) current() bool { return p.Valid && p.Attached && p.Offered && p.ShadowedBy == "" }

// Problems returns what is wrong with the roots. See [Pack.Problems] for what is
// wrong with a pack.
func (c *Catalog) Problems() []diag.Diagnostic { return slices.Clone(c.problems) }

// same reports whether c and o look the same to every caller, and no pack's entry
// document or tool file changed between the two.
func (c *Catalog) same(o *Catalog) bool {
	return slices.Equal(c.problems, o.problems) && slices.EqualFunc(c.packs, o.packs, func(a, b *Pack) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Dir == b.Dir && a.Entry == b.Entry && a.state == b.state &&
			a.Attached == b.Attached && a.AttachedSince.Equal(b.AttachedSince) && a.Trust == b.Trust && a.Source == b.Source &&
			a.Valid == b.Valid && a.ShadowedBy == b.ShadowedBy && a.Loose == b.Loose &&
			slices.Equal(a.Problems, b.Problems) && slices.Equal(a.ToolFiles, b.ToolFiles) &&
			(a.Loose || a.folder.Same(b.folder)) &&
			a.Frontmatter == b.Frontmatter
	})
}

// add adds what was found in one root.
func (c *Catalog) add(opts *Options, s *scanner) {
	c.problems = append(c.problems, s.problems...)
	known := make(map[string]*Pack, len(c.packs)) // :: directory → pack of an earlier root
	for _, p := range c.packs {
		known[p.Dir] = p
	}
	attach := make(map[string]bool, len(s.root.Attach)) // :: id in lower case → found
	all := s.root.AttachAll
	for _, id := range s.root.Attach {
		if id == "all" {
			all = true
		} else {
			attach[strings.ToLower(id)] = false
		}
	}
	for _, p := range s.found {
		_, listed := attach[strings.ToLower(p.ID)]
		if listed {
			attach[strings.ToLower(p.ID)] = true
		}
		if first := known[p.Dir]; first != nil {
			// The roots overlap. The first one describes the pack, and the pack
			// is attached if either root attaches it.
			if (all || listed) && !opts.Attached.IsDetached(first.ID) {
				first.Attached = true
			}
			continue
		}
		p.Attached = (all || listed) && !opts.Attached.IsDetached(p.ID) || opts.attaches(p.ID)
		if e, ok := opts.Attached.Attached[p.ID]; ok {
			if e.Dir == p.Dir {
				p.Attached, p.AttachedSince = true, e.Since
				if e.Trust != "" {
					p.Trust = Trust(e.Trust).normal()
				}
			} else if !p.Attached {
				p.problem(diag.Warning, CodeAttachedOther, 0,
					fmt.Sprintf("the id %q was attached for the pack in %q, so this one is not", p.ID, e.Dir), "attach it by name if you want this one")
			}
		}
		p.Offered = IsOffered(p.Modes(), opts.Mode)
		c.packs = append(c.packs, p)
	}
	for _, id := range s.root.Attach {
		if found, ok := attach[strings.ToLower(id)]; ok && !found {
			c.problems = append(c.problems, diag.Diagnostic{
				Code: CodeAttachUnknown, Severity: diag.Warning, File: s.root.Dir,
				Message: fmt.Sprintf("the configuration attaches %q, but the folder has no such pack", id), Hint: "correct attach: in the configuration",
			})
		}
	}
}

// attaches reports whether the options attach a pack for this scan only.
func (o *Options) attaches(id string) bool {
	return slices.ContainsFunc(o.Attach, func(want string) bool { return want == "all" || strings.EqualFold(want, id) })
}

// IsOffered reports whether what lists these modes is offered in the configured mode.
// An empty mode means "Global".
func IsOffered(modes []string, mode string) bool {
	mode = cmp.Or(mode, modeGlobal)
	return len(modes) == 0 || slices.ContainsFunc(modes, func(m string) bool {
		return strings.EqualFold(m, modeGlobal) || strings.EqualFold(m, mode)
	})
}

// finish sorts the packs and decides which one gets an id that several have.
func (c *Catalog) finish() {
	for _, p := range c.packs {
		p.Valid = !diag.HasErrors(p.Problems)
	}
	slices.SortStableFunc(c.packs, func(a, b *Pack) int { return compareID(a, strings.ToLower(b.ID)) }) // equal ids stay in the order they were found
	for rest := c.packs; len(rest) > 0; {
		key := strings.ToLower(rest[0].ID)
		n := 1
		for n < len(rest) && compareID(rest[n], key) == 0 {
			n++
		}
		c.settle(rest[:n])
		rest = rest[n:]
	}
	for _, p := range c.packs {
		diag.Sort(p.Problems)
	}
}

// settle takes packs with the same id. It puts the one that keeps the id first and
// marks the others as shadowed.
func (c *Catalog) settle(same []*Pack) {
	// An invalid pack never shadows a valid one.
	i := max(0, slices.IndexFunc(same, func(p *Pack) bool { return p.Valid }))
	winner := same[i]
	copy(same[1:], same[:i])
	same[0] = winner
	for _, p := range same[1:] {
		p.ShadowedBy = winner.Dir
		p.problem(diag.Warning, CodeShadowed, 0,
			fmt.Sprintf("the pack in %q has the id %q, so this one, in %q, does not count", winner.Dir, p.ID, p.Dir), "rename one of them, or remove one of the two folders of packs")
	}
}

func compareID(p *Pack, lower string) int { return strings.Compare(strings.ToLower(p.ID), lower) }

// named returns the pack with an id, given in lower case, or nil.
func (c *Catalog) named(lower string) *Pack {
	if i, ok := slices.BinarySearchFunc(c.packs, lower, compareID); ok {
		return c.packs[i] // the first of equal ids
	}
	return nil
}

// ErrNotFound is wrapped by every [NotFoundError] and [AmbiguousError].
var ErrNotFound = errors.New("pack not found")

// A NotFoundError says that no pack has this id.
type NotFoundError struct {
	ID   string
	Near []string // ids that look like it, at most three
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("no pack %q", safetext.Shorten(e.ID, maxShownID))
	if len(e.Near) > 0 {
		text += fmt.Sprintf("; near to it are %q", e.Near)
	}
	return text
}

func (e *NotFoundError) Unwrap() error { return ErrNotFound }

// An AmbiguousError says that several packs match what was given: the last segment of
// an id, or a name.
type AmbiguousError struct {
	ID      string
	Matches []string // whole ids, sorted
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q may be any of the packs %q", safetext.Shorten(e.ID, maxShownID), e.Matches)
}

func (e *AmbiguousError) Unwrap() error { return ErrNotFound }

// Lookup returns the pack with this id among all packs that are not shadowed. It is
// for people, who may see every id. Letter case does not matter. The last segment of
// the id or the pack's name is enough if only one pack has it. The error is a
// [*NotFoundError] or an [*AmbiguousError].
func (c *Catalog) Lookup(id string) (*Pack, error) {
	return c.lookup(id, func(p *Pack) bool { return p.ShadowedBy == "" })
}

// LookupAttached is Lookup among the packs of [Catalog.Attached]. It is for models: its
// errors name no other ids.
func (c *Catalog) LookupAttached(id string) (*Pack, error) {
	return c.lookup(id, (*Pack).current)
}

// ByID returns the pack of [Catalog.Attached] with exactly this id, letter case
// included, or nil.
func (c *Catalog) ByID(id string) *Pack {
	if p := c.named(strings.ToLower(id)); p != nil && p.ID == id && p.current() {
		return p
	}
	return nil
}

func (c *Catalog) lookup(id string, counts func(*Pack) bool) (*Pack, error) {
	lower := strings.ToLower(strings.Trim(strings.TrimSpace(id), "/"))
	if p := c.named(lower); p != nil && counts(p) {
		return p, nil
	}
	var matches []*Pack
	var ids []string
	for _, p := range c.packs {
		if !counts(p) {
			continue
		}
		ids = append(ids, p.ID)
		if lower != "" && (lower == strings.ToLower(path.Base(p.ID)) || lower == strings.ToLower(p.Name)) {
			matches = append(matches, p)
		}
	}
	switch {
	case len(matches) == 0 || lower == packname.Workspace:
		return nil, &NotFoundError{id, near.Names(lower, ids, nearIDs)}
	case len(matches) > 1:
		e := &AmbiguousError{ID: id}
		for _, p := range matches {
			e.Matches = append(e.Matches, p.ID)
		}
		return nil, e
	}
	return matches[0], nil
}
