package server

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A document is compared with the Catalog once for the same bytes. Other bytes are
// compared again, and so are the same bytes if the Catalog says something else.
func TestAsFoundIsRemembered(t *testing.T) {
	w := newWorld(t, triage)
	look := func() bool {
		t.Helper()
		p, err := w.lib.Catalog(t.Context()).Lookup("triage")
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
		return w.srv.asFound.is(p, dir, tree)
	}
	for range 2 {
		if !look() {
			t.Error("the document is another than it was found")
		}
	}
	if n := len(w.srv.asFound.known); n != 1 {
		t.Errorf("%d documents are remembered, want one", n)
	}
	w.put("triage/SKILL.md", "---\nname: triage\ndescription: Other.\n---\n", 0o644)
	if look() {
		t.Error("another document passes for the one that was found")
	}
	w.rescan()
	if !look() {
		t.Error("the document is another than it was found anew")
	}
	w.put("triage/SKILL.md", "---\nname: triage\ndescription: Triage incidents.\ntags: [ops]\n---\n# Triage\n\nRead docs/steps.md.\n", 0o644)
	if look() {
		t.Error("the bytes of before pass for what was found since")
	}
}
