package given

import (
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/entrydoc"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// maxTrees is how many lists of files are kept. maxListed is how many files a list
// may have: the gate says what changed only for packs that are no larger.
const (
	maxTrees  = 64
	maxListed = 2000
)

// trees caches the files of packs, one list for all requests about the same digest:
// many calls may wait at once. The zero value is ready. It is safe for concurrent
// use.
type trees struct {
	mu    sync.Mutex
	known map[string][]call.File // :: digest of a tree → its files, never changed
}

func (t *trees) files(tree *packfs.Tree) []call.File {
	if len(tree.Files) > maxListed {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if files, ok := t.known[tree.Digest]; ok {
		return files
	}
	files := make([]call.File, len(tree.Files))
	for i, f := range tree.Files {
		files[i] = call.File{Path: f.Path, Digest: f.Digest}
	}
	if t.known == nil || len(t.known) >= maxTrees {
		t.known = make(map[string][]call.File)
	}
	t.known[tree.Digest] = files
	return files
}

// asFound remembers which entry documents agree with the Catalog, by the digests of
// their bytes. The zero value is ready. It is safe for concurrent use.
type asFound struct {
	mu    sync.Mutex
	known map[foundDocument]bool
}

type foundDocument struct {
	digest string // of the file
	says   frontmatter.Summary
}

// is reports [entrydoc.IsAsFound] for a tree that was just digested.
func (a *asFound) is(p *packs.Pack, dir *packfs.Dir, tree *packfs.Tree) bool {
	file, ok := tree.Resolve(p.Entry)
	if !ok || p.Loose {
		return entrydoc.IsAsFound(p, dir, tree)
	}
	doc := foundDocument{file.Digest, p.Frontmatter}
	a.mu.Lock()
	known := a.known[doc]
	a.mu.Unlock()
	if known {
		return true
	}
	if !entrydoc.IsAsFound(p, dir, tree) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxTrees {
		a.known = make(map[foundDocument]bool)
	}
	a.known[doc] = true
	return true
}
