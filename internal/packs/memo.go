package packs

import (
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A memo is what a scan of one root remembers for the next, so that the next reads
// only what changed. It is immutable. There are several times as many directories as
// packs, so they are encoded in one string, which takes little memory and none of the
// garbage collector's time; see [node] for its content.
type memo struct {
	dir   string                // of the root, absolute, symlinks resolved
	tree  string                // the directories, the root at offset 0; empty: nothing is remembered
	links map[string]int        // :: directory that a link led to, relative to dir → where it is in tree
	docs  []frontmatter.Summary // of documents, by their number in tree
	other map[int]packfs.Which  // :: where a directory is in tree → which it is, when no inode says so
	fresh bool                  // it differs from the memo before
	// always reports whether any node has it set; an index does not store it.
	always bool
	lasts  bool // its stamps are valid in another process, too
	reads  int  // directories and documents that were read for it
	steps  int  // taken by the documents
	unread int  // documents for which there were no steps left
}

// maxTree is the largest tree in bytes, so that offsets fit in 32 bits. A larger one,
// which would hardly fit in memory, is not remembered.
const maxTree = 1 << 30

// isEmpty reports whether nothing is remembered; m may be nil.
func (m *memo) isEmpty() bool { return m == nil || m.tree == "" }

// link returns where the directory is in the tree that a link led to. rel is relative
// to the root.
func (m *memo) link(rel string) (at int, ok bool) {
	at, ok = m.links[rel]
	return at, ok
}

// same reports whether both remember the same.
func (m *memo) same(o *memo) bool {
	return m.dir == o.dir && m.tree == o.tree && len(m.other)+len(o.other) == 0 && maps.Equal(m.links, o.links) && slices.Equal(m.docs, o.docs)
}

// A node is one directory. What is remembered about it is valid as long as the
// directory has the same stamp. In a memo's tree, it is followed by the nodes below
// it, sorted by name.
type node struct {
	name    string
	stamp   packfs.Stamp // zero when it cannot be relied on
	which   packfs.Which
	entries entries  // those that matter
	cut     bool     // there are more entries than were looked at
	docs    []record // those that were read, sorted by name
	tools   *listing // of the folder tools of a pack; nil when there is none

	// always says that the content can change without changing the stamp of the
	// directory or of its documents: it has symlinks, or the configuration names
	// documents below it.
	always bool
	state  uint64 // of the stamps of a pack's entry document and files with tools
}

// A listing is which files with tools a directory holds.
type listing struct {
	stamp packfs.Stamp // zero when it cannot be relied on
	names []string
}

// A record is what was read of one file: an entry document, or a loose tool.
type record struct {
	name     string
	stamp    packfs.Stamp        // zero when it cannot be relied on
	doc      frontmatter.Summary // zero when nothing could be read
	number   int                 // of doc, in the memo that it was read from
	tools    bool                // it may declare tools; known only where that counts, see [scanner.read]
	problems []diag.Diagnostic   // never appended to
}

func compareRecord(r record, name string) int { return strings.Compare(r.name, name) }

// document returns what is remembered of a document; nil for nothing.
func (n *node) document(name string) *record {
	if n == nil {
		return nil
	}
	if i, ok := slices.BinarySearchFunc(n.docs, name, compareRecord); ok {
		return &n.docs[i]
	}
	return nil
}

// An entry is a name in a directory, with its type.
type entry struct {
	name string
	mode fs.FileMode // type bits
}

func (e entry) IsDir() bool { return e.mode.IsDir() }

// entries is the list of a directory's entries, sorted by name. Each is encoded as a
// byte for its type, its name, and a slash.
type entries string

func entriesOf(found []fs.DirEntry) entries {
	var b strings.Builder
	for _, e := range found {
		kind := byte('o')
		switch t := e.Type(); {
		case t.IsDir():
			kind = 'd'
		case t&fs.ModeSymlink != 0:
			kind = 'l'
		case t.IsRegular():
			kind = 'f'
		}
		b.WriteByte(kind)
		b.WriteString(e.Name())
		b.WriteByte('/')
	}
	return entries(b.String())
}

// all yields the entries. Their names are parts of the text.
func (l entries) all() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for l != "" {
			i := strings.IndexByte(string(l), '/')
			if i < 1 {
				return
			}
			e := entry{name: string(l[1:i])}
			switch l[0] {
			case 'd':
				e.mode = fs.ModeDir
			case 'l':
				e.mode = fs.ModeSymlink
			case 'f':
			default:
				e.mode = fs.ModeIrregular
			}
			if !yield(e) {
				return
			}
			l = l[i+1:]
		}
	}
}

func (l entries) find(name string) (entry, bool) {
	for e := range l.all() {
		if e.name >= name {
			return e, e.name == name
		}
	}
	return entry{}, false
}

// dirs yields every directory that was looked at.
func (m *memo) dirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		if m.tree == "" || !m.below(m.dir, 0, yield) {
			return
		}
		for rel, at := range m.links {
			if !m.below(filepath.Join(m.dir, filepath.FromSlash(rel)), at, yield) {
				return
			}
		}
	}
}

// below yields dir, which is at that place in the tree, and those below it.
func (m *memo) below(dir string, at int, yield func(string) bool) bool {
	if !yield(dir) {
		return false
	}
	n := new(node)
	subs, _ := m.read(at, n)
	tools := n.tools != nil
	for subs.at < subs.end {
		name, at, ok := subs.next()
		if !ok || !m.below(dir+string(filepath.Separator)+name, at, yield) {
			return false
		}
		tools = tools && name != "tools"
	}
	return !tools || yield(dir+string(filepath.Separator)+"tools")
}
