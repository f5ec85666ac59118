package packs

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Bits of a node's flags in a tree.
const (
	nodeAlways = 1 << iota
	nodeCut
	nodeStamp // it has a stamp, and otherwise a device and an inode, which are 0 for none
	nodeState
	nodeTools
	nodeFlags // behind the last one
)

// A writer makes the tree of a memo. It copies nothing as long as the output equals
// old, since most scans find the same as the one before.
type writer struct {
	before  *memo  // nil: none
	old     string // the tree before, which the new one may equal
	same    int    // old[:same] is the first part of the output, and not in b
	differs bool   // the output differs from old; then same is 0
	b       []byte // the output after old[:same]
	docs    []frontmatter.Summary
	links   map[string]int // :: see [memo]
	other   map[int]packfs.Which
	// always is whether any node that was written has that.
	always bool
}

// newWriter returns a writer that expects much the same as before has.
func newWriter(before *memo) writer {
	return writer{before: before, old: before.tree, docs: make([]frontmatter.Summary, 0, len(before.docs)+len(before.docs)/16)}
}

// memo returns what was written, for the root dir. If that is what was there before,
// the two share everything. If it is too large, the memo is empty.
func (w *writer) memo(dir string) *memo {
	if w.size() > maxTree {
		return &memo{dir: dir, always: true}
	}
	m := &memo{dir: dir, tree: w.tree(), links: w.links, docs: w.docs, other: w.other, fresh: true, always: w.always}
	if w.before != nil && m.same(w.before) {
		m.docs, m.links, m.fresh = w.before.docs, w.before.links, false
	} else {
		m.docs = slices.Clone(m.docs) // with no room behind them
	}
	return m
}

// link says that a link led to the directory rel, relative to the root, whose node
// begins at the offset at.
func (w *writer) link(rel string, at int) {
	if w.links == nil {
		w.links = make(map[string]int)
	}
	w.links[rel] = at
}

// size returns how many bytes are written.
func (w *writer) size() int { return w.same + len(w.b) }

// compare moves what is in b to same, if old continues with it.
func (w *writer) compare() {
	switch {
	case w.differs:
	case len(w.b) <= len(w.old)-w.same && w.old[w.same:w.same+len(w.b)] == string(w.b):
		w.same, w.b = w.size(), w.b[:0]
	default:
		w.diverge()
	}
}

// diverge copies the part that equals old, because the output no longer does.
func (w *writer) diverge() {
	all := make([]byte, 0, len(w.old)+len(w.old)/16+len(w.b))
	all = append(all, w.old[:w.same]...)
	w.b, w.same, w.differs = append(all, w.b...), 0, true
}

// tree returns the output: old itself if they are equal.
func (w *writer) tree() string {
	switch {
	case w.differs:
		return string(w.b)
	case w.same == len(w.old):
		return w.old
	}
	return strings.Clone(w.old[:w.same])
}

func (w *writer) number(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *writer) text(s string) { w.b = packed.AppendText(w.b, s) }

func (w *writer) stamp(s packfs.Stamp) { w.b, _ = s.AppendBinary(w.b) } // it cannot fail

// begin writes a node and returns the offset for end. Nodes written before end are
// below it.
func (w *writer) begin(n *node) (at int) {
	begin := w.size()
	w.text(n.name)
	at = w.size()
	if !w.differs && at+4 <= len(w.old) { // what end will say if nothing changed
		w.b = append(w.b, w.old[at:at+4]...)
	} else {
		w.b = append(w.b, 0, 0, 0, 0) // for how many bytes are behind them
	}
	device, inode, ok := n.which.Inode()
	if !ok && n.which != (packfs.Which{}) {
		if w.other == nil {
			w.other = make(map[int]packfs.Which)
		}
		w.other[begin] = n.which
	}
	var flags uint64
	w.always = w.always || n.always
	for i, is := range []bool{n.always, n.cut, !n.stamp.IsZero(), n.state != 0, n.tools != nil} {
		if is {
			flags |= 1 << i
		}
	}
	w.number(flags)
	if flags&nodeStamp != 0 {
		w.stamp(n.stamp)
	} else {
		w.number(device)
		w.number(inode)
	}
	if flags&nodeState != 0 {
		w.b = binary.LittleEndian.AppendUint64(w.b, n.state)
	}
	w.text(string(n.entries))
	if n.tools != nil {
		w.stamp(n.tools.stamp)
		w.b = packed.AppendTexts(w.b, n.tools.names)
	}
	slices.SortFunc(n.docs, func(a, b record) int { return strings.Compare(a.name, b.name) })
	w.number(uint64(len(n.docs)))
	for i := range n.docs {
		w.record(&n.docs[i])
	}
	w.compare()
	return at
}

// end ends the node that begin returned at for.
func (w *writer) end(at int) {
	var size [4]byte
	binary.LittleEndian.PutUint32(size[:], uint32(w.size()-at-4))
	if !w.differs {
		if w.old[at:at+4] == string(size[:]) { // begin compared them, whatever they say
			return
		}
		w.diverge()
	}
	copy(w.b[at:], size[:])
}

func (w *writer) record(r *record) {
	w.text(r.name)
	w.stamp(r.stamp)
	number := uint64(len(w.docs)) << 1
	if r.tools {
		number |= 1
	}
	w.number(number)
	w.docs = append(w.docs, r.doc)
	w.number(uint64(len(r.problems)))
	for _, p := range r.problems {
		for _, s := range []string{p.Code, string(p.Severity), p.File, p.Pointer, p.Message, p.Hint} {
			w.text(s)
		}
		w.number(uint64(p.Line))
		w.number(uint64(p.Column))
	}
}

// subs are nodes of a tree that follow each other.
type subs struct {
	tree    string
	at, end int // of those that are left
}

// next returns the next one.
func (s *subs) next() (name string, at int, ok bool) {
	if s.at >= s.end {
		return "", 0, false
	}
	at = s.at
	r := packed.From(s.tree[at:s.end])
	name = r.Text()
	r.Bytes(int(r.Fixed(4)))
	s.at = s.end - len(r.Rest())
	return name, at, !r.IsBad()
}

// find is next for the one of a name, when names are asked for in their order.
func (s *subs) find(want string) (at int, ok bool) {
	for {
		begin := s.at
		name, at, ok := s.next()
		switch {
		case !ok || name == want:
			return at, ok
		case name > want:
			s.at = begin
			return 0, false
		}
	}
}

// read reads the node at a place of the tree into n, and returns those below it;
// ok is false when there is none. All texts but those of problems are parts of
// the tree.
func (m *memo) read(at int, n *node) (below subs, ok bool) {
	r := packed.From(m.tree[at:])
	docs := n.docs[:0]
	*n = node{name: r.Text()}
	size := int(r.Fixed(4))
	end := len(m.tree) - len(r.Rest()) + size
	r = r.Within(size)

	flags := r.Number()
	n.always, n.cut = flags&nodeAlways != 0, flags&nodeCut != 0
	if flags&nodeStamp != 0 {
		n.stamp = packfs.ReadStamp(&r)
		n.which = n.stamp.Which()
	} else if device, inode := r.Number(), r.Number(); inode != 0 {
		n.which = packfs.WhichInode(device, inode)
	} else {
		n.which = m.other[at]
	}
	if flags&nodeState != 0 {
		n.state = r.Fixed(8)
	}
	n.entries = entries(r.Text())
	if flags&nodeTools != 0 {
		n.tools = &listing{stamp: packfs.ReadStamp(&r), names: r.Texts()}
	}
	for range r.Count() {
		docs = append(docs, m.record(&r))
	}
	n.docs = docs
	if r.IsBad() || flags >= nodeFlags {
		return subs{}, false
	}
	return subs{m.tree, end - len(r.Rest()), end}, true
}

func (m *memo) record(r *packed.Reader) record {
	d := record{name: r.Text(), stamp: packfs.ReadStamp(r)}
	number := r.Number()
	d.tools = number&1 != 0
	if i := number >> 1; i < uint64(len(m.docs)) {
		d.doc, d.number = m.docs[i], int(i)
	} else {
		r.Fail()
	}
	for range r.Count() {
		var p diag.Diagnostic
		var severity string
		for _, s := range []*string{&p.Code, &severity, &p.File, &p.Pointer, &p.Message, &p.Hint} {
			*s = strings.Clone(r.Text()) // packs have it, which stay longer than the tree
		}
		p.Severity, p.Line, p.Column = diag.Severity(severity), int(r.Number()), int(r.Number())
		d.problems = append(d.problems, p)
	}
	return d
}

// find returns the offsets in the tree of a directory and those above it, the root
// first, or nil if it is not there.
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

// isPlain reports whether nothing refers to a place in the tree, so that nodes may
// change their size.
func (m *memo) isPlain() bool { return len(m.links)+len(m.other) == 0 }

// with returns the memo with another node in the place of one, which has one document
// as before. at is what find returned for it. The directories below it stay. It returns
// nil if the result cannot be stored.
func (m *memo) with(at []int, now *node) *memo {
	old := new(node)
	below, ok := m.read(at[len(at)-1], old)
	if !ok || len(old.docs) != 1 || len(now.docs) != 1 || !m.isPlain() {
		return nil
	}
	docs := slices.Clone(m.docs)
	w := writer{differs: true, docs: docs[:old.docs[0].number]} // so that its document gets the same number
	from := at[len(at)-1]
	size := w.begin(now) // offset of the node's size
	w.b = append(w.b, below.tree[below.at:below.end]...)
	w.end(size)
	if w.other != nil || len(m.tree)+len(w.b) > maxTree {
		return nil
	}
	tree := make([]byte, 0, from+len(w.b)+len(m.tree)-below.end)
	tree = append(append(append(tree, m.tree[:from]...), w.b...), m.tree[below.end:]...)
	for _, above := range at[:len(at)-1] {
		r := packed.From(m.tree[above:])
		r.Text() // its name
		place := len(m.tree) - len(r.Rest())
		binary.LittleEndian.PutUint32(tree[place:], uint32(int(r.Fixed(4))+len(tree)-len(m.tree)))
	}
	return &memo{dir: m.dir, tree: string(tree), links: m.links, docs: docs, fresh: true, lasts: m.lasts}
}

// isWhole reports whether a scan could have made the tree.
func (m *memo) isWhole() bool {
	starts := map[int]bool{0: true}
	for rel, at := range m.links {
		if starts[at] || !filepath.IsLocal(filepath.FromSlash(rel)) {
			return false
		}
		starts[at] = true
	}
	all := subs{m.tree, 0, len(m.tree)}
	for n := new(node); all.at < all.end; {
		_, at, ok := all.next()
		if !ok || !starts[at] || !m.isNode(at, n, 0) {
			return false
		}
		delete(starts, at)
	}
	return len(starts) == 0
}

// isNode is isWhole of one node and those below it. It uses n.
func (m *memo) isNode(at int, n *node, depth int) bool {
	below, ok := m.read(at, n)
	if !ok || depth > maxDepth || !n.entries.isWhole() {
		return false
	}
	if n.tools != nil && slices.ContainsFunc(n.tools.names, isNoName) {
		return false
	}
	for last := ""; below.at < below.end; {
		name, at, ok := below.next()
		if !ok || isNoName(name) || name <= last || !m.isNode(at, n, depth+1) {
			return false
		}
		last = name
	}
	return true
}

func (l entries) isWhole() bool {
	for rest := string(l); rest != ""; {
		name, after, ok := strings.Cut(rest, "/")
		if !ok || len(name) < 2 || isNoName(name[1:]) {
			return false
		}
		rest = after
	}
	return true
}

// isNoName reports whether name cannot be the name of a directory entry.
func isNoName(name string) bool {
	return name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || strings.ContainsRune(name, filepath.Separator)
}
