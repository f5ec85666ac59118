// Package memo remembers what a scan of a folder of packs saw, so that the next scan
// reads only what changed. An [Index] keeps it on disk for the next start.
//
// A [Memo] holds one [Node] for each directory: which entries it has, what its
// documents say, and the stamps that tell whether that still holds. A scan reads the
// nodes of the last Memo beside the directories and gives what it found to a [Writer],
// which makes the next Memo. [Stamper] says which stamps can be relied on.
//
// The package opens no pack and reads no document. It does not know what a pack is or
// which folder is one; package packs decides that. Nothing here counts for security:
// digests are taken from the files themselves.
package memo

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

// A Memo is what one scan of one root remembers for the next. The scan that made it
// sets the exported fields; after that it is immutable. There are several times as many
// directories as packs, so they are encoded in one string, which takes little memory and
// none of the garbage collector's time.
type Memo struct {
	Dir    string // of the root, absolute, symlinks resolved
	Fresh  bool   // it differs from the memo before
	Always bool   // a node has Always set; an index does not store it
	Lasts  bool   // its stamps are valid in another process, too
	Reads  int    // directories and documents that were read for it
	Steps  int    // taken by the documents
	Unread int    // documents for which there were no steps left

	tree  string                // the directories, with the root at offset 0; empty: nothing is remembered
	links map[string]int        // :: directory that a link led to, relative to Dir → its offset in tree
	docs  []frontmatter.Summary // the documents, by their numbers in tree
	other map[int]packfs.Which  // :: offset of a directory in tree → its identity, if it has no inode
}

// MaxDepth is how many directories below each other are looked at: enough for nearly
// all real packs. Directories in the root are 1 deep. What lies deeper is in no memo.
const MaxDepth = 16

// maxTree is the largest tree in bytes, so that offsets fit in 32 bits. A larger one,
// which would hardly fit in memory, is not remembered.
const maxTree = 1 << 30

// IsEmpty reports whether nothing is remembered; m may be nil.
func (m *Memo) IsEmpty() bool { return m == nil || m.tree == "" }

// Link returns where the node of the directory rel is in the tree. A symlink led to that
// directory. rel is relative to the root, with slashes.
func (m *Memo) Link(rel string) (at int, ok bool) {
	at, ok = m.links[rel]
	return at, ok
}

// same reports whether both remember the same.
func (m *Memo) same(o *Memo) bool {
	return m.Dir == o.Dir && m.tree == o.tree && len(m.other)+len(o.other) == 0 && maps.Equal(m.links, o.links) && slices.Equal(m.docs, o.docs)
}

// A Node is one directory. What it says is valid as long as the directory has the same
// stamp. In a memo's tree, it is followed by the nodes below it, sorted by name.
type Node struct {
	Name    string
	Stamp   packfs.Stamp // zero when it cannot be relied on
	Which   packfs.Which
	Entries Entries  // those that matter
	Cut     bool     // there were more entries than were looked at
	Docs    []Record // the documents that were read, sorted by name
	Tools   *Listing // of the pack's folder tools; nil if there is none

	// Always says that the content can change without changing the stamp of the
	// directory or of its documents: it has symlinks, or the configuration names
	// documents below it.
	Always bool
	State  uint64 // of the stamps of a pack's entry document and files with tools
}

// A Listing names the files with tools in a directory.
type Listing struct {
	Stamp packfs.Stamp // zero when it cannot be relied on
	Names []string
}

// A Record is what was read of one file: an entry document, or a loose tool.
type Record struct {
	Name     string
	Stamp    packfs.Stamp        // zero when it cannot be relied on
	Doc      frontmatter.Summary // zero when nothing could be read
	number   int                 // of the document, in the memo that it was read from
	Tools    bool                // it may declare tools; known only for documents that make a pack only with tools
	Problems []diag.Diagnostic   // never appended to
}

func compareRecord(r Record, name string) int { return strings.Compare(r.Name, name) }

// Document returns what is remembered of a document, or nil. n may be nil.
func (n *Node) Document(name string) *Record {
	if n == nil {
		return nil
	}
	if i, ok := slices.BinarySearchFunc(n.Docs, name, compareRecord); ok {
		return &n.Docs[i]
	}
	return nil
}

// An Entry is a name in a directory, with its type.
type Entry struct {
	Name string
	Mode fs.FileMode // type bits
}

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return e.Mode.IsDir() }

// Entries is the list of a directory's entries, sorted by name. Each is encoded as a
// byte for its type, its name, and a slash.
type Entries string

// EntriesOf encodes entries that are sorted by name.
func EntriesOf(found []fs.DirEntry) Entries {
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
	return Entries(b.String())
}

// All yields the entries. Their names are parts of the text.
func (l Entries) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for l != "" {
			i := strings.IndexByte(string(l), '/')
			if i < 1 {
				return
			}
			e := Entry{Name: string(l[1:i])}
			switch l[0] {
			case 'd':
				e.Mode = fs.ModeDir
			case 'l':
				e.Mode = fs.ModeSymlink
			case 'f':
			default:
				e.Mode = fs.ModeIrregular
			}
			if !yield(e) {
				return
			}
			l = l[i+1:]
		}
	}
}

// Find returns the entry with a name.
func (l Entries) Find(name string) (Entry, bool) {
	for e := range l.All() {
		if e.Name >= name {
			return e, e.Name == name
		}
	}
	return Entry{}, false
}

// Dirs yields the absolute path of every directory that was looked at.
func (m *Memo) Dirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		if m.tree == "" || !m.below(m.Dir, 0, yield) {
			return
		}
		for rel, at := range m.links {
			if !m.below(filepath.Join(m.Dir, filepath.FromSlash(rel)), at, yield) {
				return
			}
		}
	}
}

// below yields dir, whose node is at this offset in the tree, and the directories
// below it.
func (m *Memo) below(dir string, at int, yield func(string) bool) bool {
	if !yield(dir) {
		return false
	}
	n := new(Node)
	subs, _ := m.Read(at, n)
	tools := n.Tools != nil
	for subs.at < subs.end {
		name, at, ok := subs.Next()
		if !ok || !m.below(dir+string(filepath.Separator)+name, at, yield) {
			return false
		}
		tools = tools && name != "tools"
	}
	return !tools || yield(dir+string(filepath.Separator)+"tools")
}
