package packs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A pack is the folder that was found, not what is at its path later.
func TestOpenDirReplaced(t *testing.T) {
	tests := []struct {
		name string
		root string // of the packs, below the tree
		do   func(dir string) error
	}{
		{"link", "packs", func(dir string) error {
			return os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "packs", "p"))
		}},
		{"link inside the root", "packs", func(dir string) error { return os.Symlink("q", filepath.Join(dir, "packs", "p")) }},
		{"folder", "packs", func(dir string) error {
			return os.Rename(filepath.Join(dir, "secret"), filepath.Join(dir, "packs", "p"))
		}},
		{"root itself", "packs/p", func(dir string) error {
			return os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "packs", "p"))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeTree(t, "-- packs/p/SKILL.md --\nPACK p\n-- packs/p/tools.json --\n{}\n-- secret/SKILL.md --\nPACK p\n-- secret/tools.json --\n{}\n-- secret/key --\nsecret\n")
			opts := Options{Roots: []Root{{Dir: filepath.Join(dir, filepath.FromSlash(tt.root)), AttachAll: true}}}
			l, err := NewLibrary(t.Context(), opts, nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := l.Catalog(t.Context()).Lookup("p")
			if err != nil {
				t.Fatal(err)
			}
			d, err := p.OpenDir()
			if err != nil {
				t.Fatalf("OpenDir = %v", err)
			}
			d.Close()
			if err := os.Rename(p.Dir, filepath.Join(dir, "packs", "q")); err != nil {
				t.Fatal(err)
			}
			if err := tt.do(dir); err != nil {
				t.Skipf("symlinks: %v", err)
			}
			if _, err := p.OpenDir(); !errors.Is(err, packfs.ErrReplaced) {
				t.Errorf("OpenDir = %v, want %v", err, packfs.ErrReplaced)
			}
			if _, _, err := NewToolFiles("").Load(p); !errors.Is(err, packfs.ErrReplaced) {
				t.Errorf("Load = %v, want %v", err, packfs.ErrReplaced)
			}
			if err := l.Rescan(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, p := range l.Catalog(t.Context()).All() {
				d, err := p.OpenDir()
				if err != nil {
					t.Errorf("after Rescan: OpenDir of %q = %v", p.Dir, err)
					continue
				}
				d.Close()
			}
		})
	}
}

func TestOpenDirOfAnUnscannedPack(t *testing.T) {
	if _, err := (&Pack{Dir: t.TempDir()}).OpenDir(); !errors.Is(err, packfs.ErrReplaced) {
		t.Errorf("OpenDir of a pack that no scan found = %v, want %v", err, packfs.ErrReplaced)
	}
}

// Folders whose names give the same segment still get different ids, and no id holds
// a combining mark.
func TestSegmentsUnique(t *testing.T) {
	parents := []string{"a b", "a+b", "a-b", "a\u0301\u0301\u0301 b", "\u0301\u0302", "\u0302"}
	dir := t.TempDir()
	for _, name := range parents {
		file := filepath.Join(dir, name, "x", "SKILL.md")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Skipf("the name %q: %v", name, err)
		}
		if err := os.WriteFile(file, []byte("---\nname: x\ndescription: d\n---\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]string{}
	for _, p := range scan(t, Options{Roots: []Root{{Dir: dir}}}).All() {
		if other, ok := seen[strings.ToLower(p.ID)]; ok {
			t.Errorf("%q and %q have the id %q", other, p.Dir, p.ID)
		}
		seen[strings.ToLower(p.ID)] = p.Dir
		if strings.ContainsFunc(p.ID, unicode.IsMark) {
			t.Errorf("the id %q has a mark that combines", p.ID)
		}
	}
	if len(seen) != len(parents) {
		t.Errorf("%d ids, want %d", len(seen), len(parents))
	}
}
