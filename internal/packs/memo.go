package packs

import (
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A memo is what a scan of one root remembers for the next, so that it reads
// only what changed. What is in it is never modified: a scan makes new nodes
// where it found something new, and shares the others.
type memo struct {
	dir   string           // of the root, absolute, symlinks resolved
	top   *node            // nil: nothing is remembered
	links map[string]*node // :: directory that a link led to, relative to dir → what is there
	reads int              // directories and documents that were read for it
}

// A node is one directory. It counts as long as the directory has its stamp.
type node struct {
	name    string
	stamp   packfs.Stamp // zero when it cannot be relied on
	which   packfs.Which
	entries []entry  // those that matter, sorted by name
	cut     bool     // there are more entries than were looked at
	docs    []record // those that were read, by name
	tools   *listing // of the folder tools of a pack; nil when there is none
	subs    []*node  // sorted by name

	// always says that what is in the directory can change without a mark on it
	// or on its documents: symlinks, documents below it that the configuration names.
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
	stamp    packfs.Stamp         // zero when it cannot be relied on
	doc      *frontmatter.Summary // nil when nothing could be read
	problems []diag.Diagnostic    // never appended to
}

// An entry is a name in a directory, and what it is called there.
type entry struct {
	name string
	mode fs.FileMode // type bits
}

func (e entry) Name() string      { return e.name }
func (e entry) Type() fs.FileMode { return e.mode }
func (e entry) IsDir() bool       { return e.mode.IsDir() }

func entriesOf(found []fs.DirEntry) []entry {
	if len(found) == 0 {
		return nil
	}
	entries := make([]entry, len(found))
	for i, e := range found {
		entries[i] = entry{e.Name(), e.Type()}
	}
	return entries
}

// matters reports whether an entry may be, or lead to, something of a pack.
func matters(name string, mode fs.FileMode) bool {
	if mode.IsDir() || mode&fs.ModeSymlink != 0 {
		return !skipped(name) || isDocument(name) || isToolFile(name)
	}
	return isDocument(name) || isToolFile(name)
}

func isDocument(name string) bool {
	i := strings.LastIndexByte(name, '.')
	return i >= 0 && strings.EqualFold(name[i:], ".md")
}

func isToolFile(name string) bool {
	return name == toolsJSON || strings.HasSuffix(name, toolPackSuffix)
}

func (n *node) sub(name string) *node {
	if n == nil {
		return nil
	}
	if i, ok := slices.BinarySearchFunc(n.subs, name, func(s *node, name string) int { return strings.Compare(s.name, name) }); ok {
		return n.subs[i]
	}
	return nil
}

func (n *node) document(name string) *record {
	if n == nil {
		return nil
	}
	for i := range n.docs {
		if n.docs[i].name == name {
			return &n.docs[i]
		}
	}
	return nil
}

// dirs yields every directory that was looked at.
func (m *memo) dirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		if m.top == nil || !m.top.walk(m.dir, yield) {
			return
		}
		for rel, n := range m.links {
			if !n.walk(filepath.Join(m.dir, filepath.FromSlash(rel)), yield) {
				return
			}
		}
	}
}

func (n *node) walk(dir string, yield func(string) bool) bool {
	if !yield(dir) {
		return false
	}
	if n.tools != nil && n.sub("tools") == nil && !yield(dir+string(filepath.Separator)+"tools") {
		return false
	}
	for _, sub := range n.subs {
		if !sub.walk(dir+string(filepath.Separator)+sub.name, yield) {
			return false
		}
	}
	return true
}

// A stamper says which stamps can be relied on.
type stamper struct {
	device uint64    // of the root; 0: none, since its file system keeps no good ones
	now    time.Time // before anything was read
}

func newStamper(dir string, now time.Time) stamper {
	st := stamper{now: now}
	if info, err := os.Lstat(dir); err == nil && packfs.Local(dir) {
		st.device = packfs.StampOf(info).Device()
	}
	return st
}

// of returns the stamp of info, which was taken before what it describes is
// read; zero when it cannot be relied on later.
func (st stamper) of(info fs.FileInfo) packfs.Stamp {
	stamp := packfs.StampOf(info)
	if stamp.IsZero() || stamp.Device() != st.device || !stamp.Settled(st.now) {
		return packfs.Stamp{}
	}
	return stamp
}

// same reports whether info describes what had the stamp.
func (st stamper) same(stamp packfs.Stamp, info fs.FileInfo) bool {
	return !stamp.IsZero() && stamp == packfs.StampOf(info) && stamp.Device() == st.device
}

// A fingerprint tells two states of some files apart.
type fingerprint struct {
	sum   uint64
	st    stamper
	doubt bool // a file changes too fast for its stamp
}

// add takes the file at path as it is now; one that is not there counts as well.
func (f *fingerprint) add(path string) {
	info, err := os.Lstat(path)
	if err != nil {
		info = nil
	}
	f.addInfo(info)
}

// addInfo takes a file of which info was said; nil: it is not there.
func (f *fingerprint) addInfo(info os.FileInfo) {
	h := fnv.New64a()
	var b [8]byte
	number := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	number(f.sum)
	if info != nil {
		stamp := packfs.StampOf(info)
		number(uint64(info.Size()))
		number(uint64(info.ModTime().UnixNano()))
		raw, _ := stamp.AppendBinary(make([]byte, 0, 64))
		h.Write(raw)
		if f.st.device != 0 && f.st.of(info).IsZero() {
			f.doubt = true
		}
	}
	f.sum = h.Sum64()
}

// value is never that of another state, even when the stamps are the same and
// in doubt.
func (f *fingerprint) value() uint64 {
	if f.doubt {
		return f.sum ^ uint64(f.st.now.UnixNano())
	}
	return f.sum
}
