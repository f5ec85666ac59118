package packs

import (
	"cmp"
	"context"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

// What an edit of a pack's documents changes is that pack alone, as long as its name
// stays. Looking at it alone takes a tenth of what a look at everything takes that
// skips what was not touched: with 10,000 packs, 5 ms instead of 50.

// maxEdited is how many paths may have been touched. A look at everything is as fast
// for more.
const maxEdited = 16

// An edited is one directory that is looked at alone.
type edited struct {
	memo int   // of which root
	at   []int // where the directory and those above it are in the memo's tree, the root's first
	pack int   // which pack of the Catalog it is
}

// rescanEdited is what rescan returns, when something was written in nothing but the
// directories of some packs and nothing else can follow from it. ok is false when it
// may be otherwise; then nothing was found out. The caller holds scanning.
func (l *Library) rescanEdited(ctx context.Context, opts Options, touched map[string]bool) (c *Catalog, memos []*memo, ok bool) {
	if l.catalog == nil || len(touched) == 0 || len(touched) > maxEdited {
		return nil, nil, false
	}
	c = &Catalog{packs: slices.Clone(l.catalog.packs), problems: l.catalog.problems}
	memos = slices.Clone(l.memos)
	for dir := range touched {
		if touched[filepath.Dir(dir)] && !isRemembered(memos, dir) {
			continue // a file, or what was none: a look at the directory it is in tells
		}
		e, ok := findEdited(c, memos, dir)
		if !ok {
			return nil, nil, false
		}
		m, p, ok := e.look(ctx, &opts, memos[e.memo], c.packs[e.pack])
		if !ok {
			return nil, nil, false
		}
		memos[e.memo], c.packs[e.pack] = m, p
	}
	return c, memos, true
}

// isRemembered reports whether a path is that of a directory that was looked at.
func isRemembered(memos []*memo, path string) bool {
	return filepath.Base(path) == "tools" || slices.ContainsFunc(memos, func(m *memo) bool {
		rel, below := strings.CutPrefix(path, m.dir+string(filepath.Separator))
		return below && m.tree != "" && m.find(rel) != nil
	})
}

// findEdited finds the directory of a pack, if what is in it concerns nothing else.
func findEdited(c *Catalog, memos []*memo, dir string) (e edited, ok bool) {
	if filepath.Base(dir) == "tools" { // which may be of the pack above, too
		return e, false
	}
	e.pack = -1
	for i, p := range c.packs {
		rest, below := strings.CutPrefix(dir, p.Dir)
		if !below {
			continue
		}
		if rest == "" {
			e.pack = i
		} else if rest[0] == filepath.Separator { // packs inside of packs have bounds in common
			return e, false
		}
	}
	e.memo = -1
	for i, m := range memos {
		if m.tree == "" {
			continue
		}
		if _, below := strings.CutPrefix(dir, m.dir+string(filepath.Separator)); below {
			if e.memo >= 0 {
				return e, false // roots overlap
			}
			e.memo = i
		}
	}
	if e.pack < 0 || e.memo < 0 {
		return e, false
	}
	m := memos[e.memo]
	if m.always || m.unread > 0 || len(m.links)+len(m.other) > 0 {
		return e, false
	}
	e.at = m.find(dir[len(m.dir)+1:])
	return e, e.at != nil
}

// find returns where a directory and those above it are in the tree, the root's
// first; nil when it is not there.
func (m *memo) find(rel string) []int {
	at := []int{0}
	n := new(node)
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		below, ok := m.read(at[len(at)-1], n)
		if !ok {
			return nil
		}
		next, ok := below.find(name)
		if !ok {
			return nil
		}
		at = append(at, next)
	}
	return at
}

// look looks at the directory of the pack old, in a root of which before is
// remembered.
func (e *edited) look(ctx context.Context, opts *Options, before *memo, old *Pack) (*memo, *Pack, bool) {
	root := &opts.Roots[e.memo]
	if len(root.Entry)+len(root.Docs) > 0 || root.Inside != "" || !old.Valid || old.Loose || old.ShadowedBy != "" || old.Origin.Root != root.Dir {
		return nil, nil, false
	}
	if dir, err := filepath.EvalSymlinks(root.Dir); err != nil || dir != before.dir {
		return nil, nil, false
	}
	clock := opts.clock
	if clock == nil {
		clock = time.Now
	}
	s := &scanner{
		ctx: ctx, root: root, origin: old.Origin, bounds: opts.bounds.withDefaults(), whole: true, clock: clock, touched: map[string]bool{old.Dir: true},
		dir: before.dir, stamps: newStamper(before.dir, clock()), old: *before, names: make(map[string]string),
	}
	top := &visit{s: s, place: place{at: ".", actual: "."}, full: before.dir}
	defer top.close()
	v := top
	for name := range strings.SplitSeq(old.Dir[len(before.dir)+1:], string(filepath.Separator)) {
		full := v.path(name)
		v = v.below(name, v.place.below(name, full), full)
		defer v.close()
	}
	v.remember(e.at[len(e.at)-1])
	if v.old == nil || len(v.old.docs) != 1 || v.look() != nil || v.loud || v.now.entries != v.old.entries || v.now.cut != v.old.cut {
		return nil, nil, false
	}
	entry, others := s.entryOf(v.now.entries, v.place.at)
	if entry != old.Entry || len(others) > 0 || !s.pack(v, false) {
		return nil, nil, false
	}
	p := s.found[0]
	if v.vanished || v.now.always || len(v.now.docs) != 1 || len(s.problems) > 0 || s.unread > 0 || s.ended() != nil ||
		p.Frontmatter.Name() != old.Frontmatter.Name() || !inItself(old.Problems) || diag.HasErrors(p.Problems) {
		return nil, nil, false
	}
	p.ID, p.Dir, p.path, p.Trust, p.Valid = old.ID, old.Dir, old.path, old.Trust, true
	p.Attached, p.AttachedSince = old.Attached, old.AttachedSince
	p.Offered = offered(p.Modes(), cmp.Or(opts.Mode, modeGlobal))
	diag.Sort(p.Problems)
	m := before.with(e.at, v)
	if m == nil {
		return nil, nil, false
	}
	m.reads, m.steps = s.reads, s.steps
	return m, p, true
}

// inItself reports whether all problems of a pack are in what was read of it, and
// none came of other packs, of its name or of what is attached.
func inItself(problems []diag.Diagnostic) bool {
	return !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool {
		switch d.Code {
		case CodeNameSlugged, CodeIDReserved, CodeIDCollision, CodeAttachedOther, CodeShadowed:
			return true
		}
		return false
	})
}

// with is the memo with what v found in place of what it went by, at the last of the
// places at, which are those of a directory and all above it. The directories below it
// stay. It is nil when there can be none.
func (m *memo) with(at []int, v *visit) *memo {
	docs := slices.Clone(m.docs)
	w := writer{differs: true, docs: docs[:v.old.docs[0].number]} // so that its document has the number again
	from := at[len(at)-1]
	size := w.begin(&v.now) // where that of the node is
	w.b = append(w.b, v.subs.tree[v.subs.at:v.subs.end]...)
	w.end(size)
	if w.other != nil || len(m.tree)+len(w.b) > maxTree {
		return nil
	}
	tree := make([]byte, 0, from+len(w.b)+len(m.tree)-v.subs.end)
	tree = append(append(append(tree, m.tree[:from]...), w.b...), m.tree[v.subs.end:]...)
	for _, above := range at[:len(at)-1] {
		r := packed.From(m.tree[above:])
		r.Text() // its name
		place := len(m.tree) - len(r.Rest())
		binary.LittleEndian.PutUint32(tree[place:], uint32(int(r.Fixed(4))+len(tree)-len(m.tree)))
	}
	return &memo{dir: m.dir, tree: string(tree), links: m.links, docs: docs, fresh: true, lasts: m.lasts}
}
