package given

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// A link gives what it led to when it was digested, or nothing.
func TestPageOfALink(t *testing.T) {
	root := t.TempDir()
	testdata.Plant(t, root, "-- linked/SKILL.md --\n---\nname: linked\ndescription: L.\n---\nEntry.\n-- linked/one.txt --\nOne.\n-- linked/two.txt --\nTwo.\n")
	link := filepath.Join(root, "linked", "link.txt")
	leadTo := func(target string) {
		t.Helper()
		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Skipf("symlinks: %v", err)
		}
	}
	leadTo("one.txt")
	p := library(t, root).Catalog(t.Context()).ByID("linked")
	dir, err := p.OpenDir()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	tree, err := dir.DigestKeeping(t.Context(), nil, p.Entry, maxKept)
	if err != nil {
		t.Fatal(err)
	}
	leadTo("two.txt")
	g := New(Options{Limits: packfs.Limits{Page: 100, PageMax: 100, File: 1000}})
	page, err := g.Page(dir, tree, "link.txt", 0, 0)
	if err != nil || string(page.Data) != "One.\n" || !page.Verified || page.Path != "link.txt" {
		t.Errorf("page = %+v, %v, want what the link led to", page, err)
	}
	if err := os.WriteFile(filepath.Join(root, "linked", "one.txt"), []byte("Other.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if page, err := g.Page(dir, tree, "link.txt", 0, 0); !errors.Is(err, packfs.ErrChanged) {
		t.Errorf("page = %+v, %v, want that the file changed", page, err)
	}
}
