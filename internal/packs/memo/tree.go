package memo

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
	nodeStamp // the node has a stamp; otherwise it has a device and an inode, 0 for none
	nodeState
	nodeTools
	nodeFlags // one more than all flags
)

// A Writer makes the tree of a memo. It copies nothing as long as the output equals
// old, since most scans find the same as the one before.
type Writer struct {
	before  *Memo  // nil: none
	old     string // the previous tree, which the new one may equal
	same    int    // old[:same] is the beginning of the output, and is not in b
	differs bool   // the output differs from old; then same is 0
	b       []byte // the output after old[:same]
	docs    []frontmatter.Summary
	links   map[string]int // :: see [Memo]
	other   map[int]packfs.Which
	always  bool // a node that was written has Always set
}

// NewWriter returns a Writer. The next tree may equal that of before.
func NewWriter(before *Memo) Writer {
	return Writer{before: before, old: before.tree, docs: make([]frontmatter.Summary, 0, len(before.docs)+len(before.docs)/16)}
}

// Memo returns what was written as the Memo of the root dir. If nothing differs from the
// Memo before, the two share their memory. If the tree is too large, the Memo is empty.
func (w *Writer) Memo(dir string) *Memo {
	if w.Size() > maxTree {
		return &Memo{Dir: dir, Always: true}
	}
	m := &Memo{Dir: dir, tree: w.tree(), links: w.links, docs: w.docs, other: w.other, Fresh: true, Always: w.always}
	if w.before != nil && m.same(w.before) {
		m.docs, m.links, m.Fresh = w.before.docs, w.before.links, false
	} else {
		m.docs = slices.Clone(m.docs) // without spare capacity
	}
	return m
}

// Link records that a symlink led to the directory rel, relative to the root and with
// slashes. Its node begins at the offset at.
func (w *Writer) Link(rel string, at int) {
	if w.links == nil {
		w.links = make(map[string]int)
	}
	w.links[rel] = at
}

// Size returns how many bytes were written so far.
func (w *Writer) Size() int { return w.same + len(w.b) }

// compare moves what is in b to same, if old continues with it.
func (w *Writer) compare() {
	switch {
	case w.differs:
	case len(w.b) <= len(w.old)-w.same && w.old[w.same:w.same+len(w.b)] == string(w.b):
		w.same, w.b = w.Size(), w.b[:0]
	default:
		w.diverge()
	}
}

// diverge copies the part that equals old, because the output no longer does.
func (w *Writer) diverge() {
	all := make([]byte, 0, len(w.old)+len(w.old)/16+len(w.b))
	all = append(all, w.old[:w.same]...)
	w.b, w.same, w.differs = append(all, w.b...), 0, true
}

// tree returns the output: old itself if they are equal.
func (w *Writer) tree() string {
	switch {
	case w.differs:
		return string(w.b)
	case w.same == len(w.old):
		return w.old
	}
	return strings.Clone(w.old[:w.same])
}

func (w *Writer) number(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *Writer) text(s string) { w.b = packed.AppendText(w.b, s) }

func (w *Writer) stamp(s packfs.Stamp) { w.b, _ = s.AppendBinary(w.b) } // it cannot fail

// Begin writes a node and returns the offset for end. Nodes written before end are
// below it.
func (w *Writer) Begin(n *Node) (at int) {
	begin := w.Size()
	w.text(n.Name)
	at = w.Size()
	if !w.differs && at+4 <= len(w.old) { // what end will say if nothing changed
		w.b = append(w.b, w.old[at:at+4]...)
	} else {
		w.b = append(w.b, 0, 0, 0, 0) // room for the node's size
	}
	device, inode, ok := n.Which.Inode()
	if !ok && n.Which != (packfs.Which{}) {
		if w.other == nil {
			w.other = make(map[int]packfs.Which)
		}
		w.other[begin] = n.Which
	}
	var flags uint64
	w.always = w.always || n.Always
	for i, is := range []bool{n.Always, n.Cut, !n.Stamp.IsZero(), n.State != 0, n.Tools != nil} {
		if is {
			flags |= 1 << i
		}
	}
	w.number(flags)
	if flags&nodeStamp != 0 {
		w.stamp(n.Stamp)
	} else {
		w.number(device)
		w.number(inode)
	}
	if flags&nodeState != 0 {
		w.b = binary.LittleEndian.AppendUint64(w.b, n.State)
	}
	w.text(string(n.Entries))
	if n.Tools != nil {
		w.stamp(n.Tools.Stamp)
		w.b = packed.AppendTexts(w.b, n.Tools.Names)
	}
	slices.SortFunc(n.Docs, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	w.number(uint64(len(n.Docs)))
	for i := range n.Docs {
		w.record(&n.Docs[i])
	}
	w.compare()
	return at
}

// End ends the node that begin returned at for.
func (w *Writer) End(at int) {
	var size [4]byte
	binary.LittleEndian.PutUint32(size[:], uint32(w.Size()-at-4))
	if !w.differs {
		if w.old[at:at+4] == string(size[:]) { // Begin already compared them
			return
		}
		w.diverge()
	}
	copy(w.b[at:], size[:])
}

func (w *Writer) record(r *Record) {
	w.text(r.Name)
	w.stamp(r.Stamp)
	number := uint64(len(w.docs)) << 1
	if r.Tools {
		number |= 1
	}
	w.number(number)
	w.docs = append(w.docs, r.Doc)
	w.number(uint64(len(r.Problems)))
	for _, p := range r.Problems {
		for _, s := range []string{p.Code, string(p.Severity), p.File, p.Pointer, p.Message, p.Hint} {
			w.text(s)
		}
		w.number(uint64(p.Line))
		w.number(uint64(p.Column))
	}
}

// Subs are the nodes below a node, in the order of their names.
type Subs struct {
	tree    string
	at, end int // of the nodes that are left
}

// Next returns the name and the place of the next node. ok is false after the last one.
func (s *Subs) Next() (name string, at int, ok bool) {
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

// Find returns the place of the node with a name, and skips those before it. Names have
// to be asked for in order.
func (s *Subs) Find(want string) (at int, ok bool) {
	for {
		begin := s.at
		name, at, ok := s.Next()
		switch {
		case !ok || name == want:
			return at, ok
		case name > want:
			s.at = begin
			return 0, false
		}
	}
}

// Read reads the node at a place of the tree into n and returns those below it. The
// root is at 0. ok is false if there is no node. All texts except those of problems
// share memory with the tree.
func (m *Memo) Read(at int, n *Node) (below Subs, ok bool) {
	r := packed.From(m.tree[at:])
	docs := n.Docs[:0]
	*n = Node{Name: r.Text()}
	size := int(r.Fixed(4))
	end := len(m.tree) - len(r.Rest()) + size
	r = r.Within(size)

	flags := r.Number()
	n.Always, n.Cut = flags&nodeAlways != 0, flags&nodeCut != 0
	if flags&nodeStamp != 0 {
		n.Stamp = packfs.ReadStamp(&r)
		n.Which = n.Stamp.Which()
	} else if device, inode := r.Number(), r.Number(); inode != 0 {
		n.Which = packfs.WhichInode(device, inode)
	} else {
		n.Which = m.other[at]
	}
	if flags&nodeState != 0 {
		n.State = r.Fixed(8)
	}
	n.Entries = Entries(r.Text())
	if flags&nodeTools != 0 {
		n.Tools = &Listing{Stamp: packfs.ReadStamp(&r), Names: r.Texts()}
	}
	for range r.Count() {
		docs = append(docs, m.record(&r))
	}
	n.Docs = docs
	if r.IsBad() || flags >= nodeFlags {
		return Subs{}, false
	}
	return Subs{m.tree, end - len(r.Rest()), end}, true
}

func (m *Memo) record(r *packed.Reader) Record {
	d := Record{Name: r.Text(), Stamp: packfs.ReadStamp(r)}
	number := r.Number()
	d.Tools = number&1 != 0
	if i := number >> 1; i < uint64(len(m.docs)) {
		d.Doc, d.number = m.docs[i], int(i)
	} else {
		r.Fail()
	}
	for range r.Count() {
		var p diag.Diagnostic
		var severity string
		for _, s := range []*string{&p.Code, &severity, &p.File, &p.Pointer, &p.Message, &p.Hint} {
			*s = strings.Clone(r.Text()) // packs keep it, and outlive the tree
		}
		p.Severity, p.Line, p.Column = diag.Severity(severity), int(r.Number()), int(r.Number())
		d.Problems = append(d.Problems, p)
	}
	return d
}

// Find returns the offsets in the tree of the directory rel and of those above it,
// the root first, or nil if rel is not in the tree. rel is relative to the root.
func (m *Memo) Find(rel string) []int {
	at := []int{0}
	n := new(Node)
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		below, ok := m.Read(at[len(at)-1], n)
		if !ok {
			return nil
		}
		next, ok := below.Find(name)
		if !ok {
			return nil
		}
		at = append(at, next)
	}
	return at
}

// IsPlain reports whether nothing refers to a place in the tree. Only then can [Memo.With]
// replace a node by one of another size.
func (m *Memo) IsPlain() bool { return len(m.links)+len(m.other) == 0 }

// With returns a Memo in which now replaces one node. at is what Find returned for that
// node. The nodes below it stay. With returns nil if m is not plain, if one of the two
// nodes does not have exactly one document, or if the result cannot be stored.
func (m *Memo) With(at []int, now *Node) *Memo {
	old := new(Node)
	below, ok := m.Read(at[len(at)-1], old)
	if !ok || len(old.Docs) != 1 || len(now.Docs) != 1 || !m.IsPlain() {
		return nil
	}
	docs := slices.Clone(m.docs)
	w := Writer{differs: true, docs: docs[:old.Docs[0].number]} // so that its document gets the same number
	from := at[len(at)-1]
	size := w.Begin(now) // offset of the node's size
	w.b = append(w.b, below.tree[below.at:below.end]...)
	w.End(size)
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
	return &Memo{Dir: m.Dir, tree: string(tree), links: m.links, docs: docs, Fresh: true, Lasts: m.Lasts}
}

// isWhole reports whether a scan could have made the tree.
func (m *Memo) isWhole() bool {
	starts := map[int]bool{0: true}
	for rel, at := range m.links {
		if starts[at] || !filepath.IsLocal(filepath.FromSlash(rel)) {
			return false
		}
		starts[at] = true
	}
	all := Subs{m.tree, 0, len(m.tree)}
	for n := new(Node); all.at < all.end; {
		_, at, ok := all.Next()
		if !ok || !starts[at] || !m.isNode(at, n, 0) {
			return false
		}
		delete(starts, at)
	}
	return len(starts) == 0
}

// isNode is isWhole for one node and those below it. It uses n.
func (m *Memo) isNode(at int, n *Node, depth int) bool {
	below, ok := m.Read(at, n)
	if !ok || depth > MaxDepth || !n.Entries.isWhole() {
		return false
	}
	if n.Tools != nil && slices.ContainsFunc(n.Tools.Names, isNoName) {
		return false
	}
	for last := ""; below.at < below.end; {
		name, at, ok := below.Next()
		if !ok || isNoName(name) || name <= last || !m.isNode(at, n, depth+1) {
			return false
		}
		last = name
	}
	return true
}

func (l Entries) isWhole() bool {
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
