package packs

import (
	"cmp"
	"crypto/sha256"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// ToolFiles compiles the tools of packs, in whatever format they are declared,
// and keeps what it compiled until the file's bytes differ. The file is read
// each time: it is small, and its times can lie. Safe for concurrent use.
type ToolFiles struct {
	loader *tools.Loader
	size   int64

	mu    sync.Mutex
	known map[string]compiled // :: pack folder → its tools
}

// compiled is what came of one tools file.
type compiled struct {
	sum      [sha256.Size]byte // of the file
	set      *tools.Set
	problems []diag.Diagnostic
}

// NewToolFiles returns a ToolFiles that has compiled nothing yet.
func NewToolFiles(l tools.Limits) *ToolFiles {
	return &ToolFiles{
		loader: &tools.Loader{Limits: l},
		size:   cmp.Or(int64(l.Size), 1<<20),
		known:  make(map[string]compiled),
	}
}

// Load returns a pack's tools. A pack without a tools file has none, and no
// error; a file that is wrong gives problems and no set.
func (f *ToolFiles) Load(p *Pack) (*tools.Set, []diag.Diagnostic, error) {
	if p.ToolsFile == "" {
		return nil, nil, nil
	}
	dir, err := p.OpenDir()
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	src, err := dir.ReadAll(p.ToolsFile, f.size)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(src)
	f.mu.Lock()
	have, ok := f.known[p.Dir]
	f.mu.Unlock()
	if ok && have.sum == sum {
		return have.set, have.problems, nil
	}
	set, problems := f.loader.ParseToolsJSON(p.ToolsFile, src)
	f.mu.Lock()
	f.known[p.Dir] = compiled{sum: sum, set: set, problems: problems}
	f.mu.Unlock()
	return set, problems, nil
}

// HasTools reports whether a pack has a tool that can be enabled.
func (f *ToolFiles) HasTools(p *Pack) bool {
	set, _, err := f.Load(p)
	if err != nil || set == nil {
		return false
	}
	for _, t := range set.Tools {
		if t.Command != nil {
			return true
		}
	}
	return false
}
