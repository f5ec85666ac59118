package server

import (
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// maxTrees is how many lists of files are kept; maxListed is how many files one
// may have: the gate tells what changed only of packs that are no larger.
const (
	maxTrees  = 64
	maxListed = 2000
)

// trees gives requests the files of a pack, one list for all requests about the
// same digest: many calls may wait at once. The zero value is ready. Safe for
// concurrent use.
type trees struct {
	mu    sync.Mutex
	known map[string][]gate.File // :: digest of a tree → its files, which nobody changes
}

func (t *trees) files(tree *packfs.Tree) []gate.File {
	if len(tree.Files) > maxListed {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if files, ok := t.known[tree.Digest]; ok {
		return files
	}
	files := make([]gate.File, len(tree.Files))
	for i, f := range tree.Files {
		files[i] = gate.File{Path: f.Path, Digest: f.Digest}
	}
	if t.known == nil || len(t.known) >= maxTrees {
		t.known = make(map[string][]gate.File)
	}
	t.known[tree.Digest] = files
	return files
}
