// Package finder finds packs by words in their own descriptions and in the names of
// their tools.
//
// It does not rank (package search does), and it does not know what a chat may see: its
// caller says that with each query.
package finder

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync"
	"weak"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
	"github.com/packs-mcp/packs-mcp/internal/packs/search"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// MaxLoaded is up to how many attached packs have their tools compiled, so that the
// names of these can be found. If there are more, the names are read from the tool
// files ([Finder.Ready] does that), and until then those that are already known are
// used.
const MaxLoaded = 200

// maxNaming is how many bytes of tool files are read for names in one step: those of
// some hundred packs, which takes a moment.
const maxNaming = 1 << 20

// A Finder finds packs by words. Make one with [New]; it is safe for concurrent use.
// It makes its index in the first idle time, or with a query before that. The index
// has all packs, attached or not, since each chat has its own attached packs. When
// the Catalog changes, only packs whose searchable text changed are indexed again.
type Finder struct {
	catalog func(context.Context) *packs.Catalog // the packs there are
	files   *toolfiles.Files

	mu    sync.Mutex
	of    weak.Pointer[packs.Catalog] // the Catalog that the rest matches; it may be gone
	stale bool                        // more names of tools are known than when the rest was made
	index *search.Index               // nil: not made yet
	ids   []string                    // of the packs, in the index's order
	marks []uint64                    // a digest of what each pack says, without its id

	namedOf weak.Pointer[packs.Catalog] // the Catalog whose packs' tool names are being read
	named   int                         // how many of its packs are done
}

// New returns a finder for the packs of the current Catalog, with tools from these
// files.
func New(catalog func(context.Context) *packs.Catalog, files *toolfiles.Files) *Finder {
	return &Finder{catalog: catalog, files: files}
}

// A Match is a pack that matches a query.
type Match struct {
	Pack   *packs.Pack
	Copies []*packs.Pack // others with the same description
}

// Best returns the packs that match a query, best first, at most limit. shown returns
// the pack with an id as the caller may see it, or nil if they may not.
func (f *Finder) Best(ctx context.Context, query string, limit int, shown func(id string) *packs.Pack) []Match {
	index, ids, marks := f.searched(ctx)
	var out []Match
	for _, h := range index.Search(query, limit, search.Filter{
		Keep: func(i int) bool { return shown(ids[i]) != nil },
		Mark: func(i int) uint64 { return marks[i] },
	}) {
		m := Match{Pack: shown(ids[h.Index])}
		for _, i := range h.Copies {
			m.Copies = append(m.Copies, shown(ids[i]))
		}
		out = append(out, m)
	}
	return out
}

// searched returns the index of the current packs, their ids and marks.
func (f *Finder) searched(ctx context.Context) (*search.Index, []string, []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.catalog(ctx)
	if of := weak.Make(now); f.index == nil || f.of != of || f.stale {
		f.of, f.stale = of, false
		f.take(f.searchable(now))
	}
	return f.index, f.ids, f.marks
}

// searchable returns the ids of the packs to search, sorted, and a function that
// makes the document of one of them. Documents are made one at a time: all of them
// together would take as much memory as the index.
func (f *Finder) searchable(catalog *packs.Catalog) (ids []string, document func(i int) search.Document) {
	loads := len(catalog.Attached()) <= MaxLoaded
	return documents(catalog, func(p *packs.Pack) []string { return f.toolNames(p, loads && p.Attached) })
}

// documents is searchable with given names of tools.
func documents(catalog *packs.Catalog, toolsOf func(*packs.Pack) []string) (ids []string, document func(i int) search.Document) {
	var found []*packs.Pack
	for _, p := range catalog.All() {
		if isFindable(p) {
			found = append(found, p)
			ids = append(ids, p.ID)
		}
	}
	return ids, func(i int) search.Document {
		p := found[i]
		return search.Document{
			Name: p.ID + " " + p.Name, Tags: p.Tags(), Tools: toolsOf(p), Description: p.Description,
		}
	}
}

// take makes the index for these documents, and reuses the previous one as far as
// possible. The caller holds mu.
func (f *Finder) take(ids []string, document func(i int) search.Document) {
	marks := make([]uint64, len(ids))
	old := make([]int, len(ids)) // :: document → its number in the index, or -1
	var buf []byte
	was, kept := 0, 0
	for i := range ids {
		// Take the mark first: if names of tools become known before the index takes
		// the document, the mark is outdated, and the next take indexes it again.
		d := document(i)
		marks[i], buf = markOfDocument(buf, &d, ids[i])
		for was < len(f.ids) && f.ids[was] != ids[i] && compareFolded(f.ids[was], ids[i]) < 0 {
			was++
		}
		if old[i] = -1; was < len(f.ids) && f.ids[was] == ids[i] && f.marks[was] == marks[i] {
			old[i] = was
			kept++
		}
	}
	switch {
	case f.index == nil || kept < len(ids)/2:
		f.index = search.New(func(yield func(search.Document) bool) {
			for i := range ids {
				if !yield(document(i)) {
					return
				}
			}
		})
	case kept < len(ids) || kept < len(f.ids):
		f.index = f.index.Changed(old, document)
	}
	f.ids, f.marks = ids, marks
}

// compareFolded compares ids as a Catalog sorts them.
func compareFolded(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }

// markOfDocument returns a digest of a document without its id. It uses the space of
// buf, and returns that for the next one.
func markOfDocument(buf []byte, d *search.Document, id string) (mark uint64, _ []byte) {
	buf = packed.AppendText(buf[:0], d.Name[len(id):])
	buf = packed.AppendText(buf, d.Description)
	buf = packed.AppendTexts(buf, d.Tags)
	buf = packed.AppendTexts(buf, d.Tools)
	sum := sha256.Sum256(buf)
	return binary.LittleEndian.Uint64(sum[:]), buf
}

// isFindable reports whether some chat may find a pack.
func isFindable(p *packs.Pack) bool { return p.Valid && p.ShadowedBy == "" && address.IsOffered(p) }

// toolNames returns the names of a pack's tools; without load, those that are known
// without reading its files.
func (f *Finder) toolNames(p *packs.Pack, load bool) []string {
	if load {
		if set, _, err := f.files.Offered(p); err == nil && set != nil {
			var names []string
			for _, t := range set.Tools {
				names = append(names, t.Name)
			}
			return names
		}
	}
	if names := f.files.Names(p); names != nil {
		return names
	}
	return namedByFiles(p)
}

// namedByFiles returns the names of tools that the names of a pack's files tell.
func namedByFiles(p *packs.Pack) (names []string) {
	for _, file := range p.ToolFiles {
		name := file[strings.LastIndexByte(file, '/')+1:]
		if name, ok := formats.CutToolPack(name); ok {
			names = append(names, name)
		}
	}
	return names
}

// Ready prepares for the next query, and reads the names of tools, one step at a
// time. It reports whether it did something, and then there may be more to do. Call
// it when nothing else needs to be done. It stops early if ctx ends.
func (f *Finder) Ready(ctx context.Context) (did bool) { return f.ready(ctx, maxNaming) }

// ready is Ready with this many bytes in a step.
func (f *Finder) ready(ctx context.Context, max int) (did bool) {
	now := f.catalog(ctx)
	all := now.All()
	f.mu.Lock()
	if of := weak.Make(now); f.namedOf != of {
		f.namedOf, f.named = of, 0
	}
	next, before := f.named, f.index
	f.mu.Unlock()
	did = f.files.Name(ctx, func(yield func(*packs.Pack) bool) {
		for ; next < len(all); next++ {
			if isFindable(all[next]) && !yield(all[next]) {
				return // this pack was not read
			}
		}
	}, max)
	f.mu.Lock()
	f.named = next
	f.stale = f.stale || did
	f.mu.Unlock()
	if next < len(all) || ctx.Err() != nil {
		return did
	}
	made, _, _ := f.searched(ctx)
	return did || made != before
}
