// Package sourcestest has helpers for the tests of all kinds of sources: a pack in a
// folder, and filling a stage from it.
package sourcestest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// Document is the SKILL.md of a pack.
const Document = "---\nname: triage\ndescription: Sorts issues.\n---\n# Triage\n"

// Here returns an Access for servers on this machine.
func Here() *web.Access { return &web.Access{Private: []string{"127.0.0.1"}} }

// Parse parses an address.
func Parse(t *testing.T, text string) address.Reference {
	t.Helper()
	r, err := address.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Pack writes a pack, and returns its folder.
func Pack(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "triage")
	for name, content := range map[string]string{"SKILL.md": Document, "scripts/run.sh": "#!/bin/sh\n", "references/a-long-name-" + strings.Repeat("x", 120) + ".md": "x", "references/é.md": "y"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o700
		}
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Open opens a folder, until the test ends.
func Open(t *testing.T, dir string) sources.Snapshot {
	t.Helper()
	s, err := sources.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Fill puts a path of a snapshot into a new folder, which it returns.
func Fill(t *testing.T, s sources.Snapshot, under string) (*stage.Tree, string, error) {
	t.Helper()
	return FillIn(t.Context(), filepath.Join(t.TempDir(), "filled"), s, under)
}

// FillIn puts a path of a snapshot into dir, which it makes.
func FillIn(ctx context.Context, dir string, s sources.Snapshot, under string) (*stage.Tree, string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, dir, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, dir, err
	}
	defer root.Close()
	st := stage.New(stage.Into{Root: root}, stage.Limits{})
	if err := sources.Fill(ctx, s, under, st); err != nil {
		return nil, dir, err
	}
	tree, err := st.Finish()
	return tree, dir, err
}

// Paths returns the paths in a tree: an executable file is followed by a star, and a
// link by its target.
func Paths(tree *stage.Tree) (all []string) {
	for _, f := range tree.Files {
		name := f.Path
		if f.Exec {
			name += "*"
		}
		if f.Target != "" {
			name += " -> " + f.Target
		}
		all = append(all, name)
	}
	return all
}
