package given

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// A document is compared with the Catalog once for the same bytes. Other bytes are
// compared again, and so are the same bytes if the Catalog says something else.
func TestAsFoundIsRemembered(t *testing.T) {
	root := t.TempDir()
	testdata.Plant(t, root, testdata.Packs("triage"))
	lib := library(t, root)
	var found asFound
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "triage", "SKILL.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	look := func() bool {
		t.Helper()
		p, err := lib.Catalog(t.Context()).Lookup("triage")
		if err != nil {
			t.Fatal(err)
		}
		dir, err := p.OpenDir()
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		tree, err := dir.DigestKeeping(t.Context(), new(packfs.DigestCache), p.Entry, maxKept)
		if err != nil {
			t.Fatal(err)
		}
		return found.is(p, dir, tree)
	}
	for range 2 {
		if !look() {
			t.Error("the document is another than it was found")
		}
	}
	if n := len(found.known); n != 1 {
		t.Errorf("%d documents are remembered, want one", n)
	}
	put("---\nname: triage\ndescription: Other.\n---\n")
	if look() {
		t.Error("another document passes for the one that was found")
	}
	if _, err := lib.Refresh(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if !look() {
		t.Error("the document is another than it was found anew")
	}
	put("---\nname: triage\ndescription: Triage incidents.\ntags: [ops]\n---\n# Triage\n\nRead docs/steps.md.\n")
	if look() {
		t.Error("the bytes of before pass for what was found since")
	}
}

// library returns the packs in a folder, all attached.
func library(t *testing.T, root string) *packs.Library {
	t.Helper()
	lib, err := packs.NewLibrary(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root, Trust: packs.TrustUser, AttachAll: true}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}
