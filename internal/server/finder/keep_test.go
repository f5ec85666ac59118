package finder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/search"
)

// After every change, queries use an index equal to one made of all packs anew, and
// the same index as before if nothing that is searched differs.
func TestSearchIndexIsKept(t *testing.T) {
	var tree strings.Builder
	for i := range MaxLoaded + 5 {
		fmt.Fprintf(&tree, "%s-- p%03d/tools.json --\n[{\"name\": \"tool_%d\", \"description\": \"D.\", \"command\": [\"true\"]}]\n", pack(fmt.Sprintf("p%03d", i), fmt.Sprintf("One of many, the %dth.", i)), i, i)
	}
	w := newWorld(t, tree.String())
	w.Ready(t.Context())
	index := func() *search.Index {
		t.Helper()
		got, ids, _ := w.searched(t.Context())
		want, document := w.searchable(w.lib.Catalog(t.Context()))
		var docs []search.Document
		for i := range want {
			docs = append(docs, document(i))
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("the ids (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(search.New(slices.Values(docs)), got, cmp.AllowUnexported(search.Index{})); diff != "" {
			t.Errorf("the index (-made anew +got):\n%s", diff)
		}
		return got
	}
	document := func(name, description, more string) string {
		return fmt.Sprintf("---\nname: %s\ndescription: %s\n%s---\nBody.\n", name, description, more)
	}
	before := index()
	for _, c := range []struct {
		name   string
		change func()
		kept   bool
	}{
		{"a body", func() { w.put("p007/SKILL.md", document("p007", "One of many, the 7th.", "")+"More.\n", 0o644) }, true},
		{"a file", func() { w.put("p007/docs/a.md", "A.\n", 0o644) }, true},
		{"what is not searched", func() {
			w.put("p007/SKILL.md", document("p007", "One of many, the 7th.", "argument-hint: x\n"), 0o644)
		}, true},
		{"a description", func() { w.put("p007/SKILL.md", document("p007", "Something else.", ""), 0o644) }, false},
		{"a name", func() { w.put("p007/SKILL.md", document("seven", "Something else.", ""), 0o644) }, false},
		{"a tag", func() { w.put("p007/SKILL.md", document("seven", "Something else.", "tags: [odd]\n"), 0o644) }, false},
		{"a tool", func() {
			w.put("p007/tools.json", `[{"name": "lucky", "description": "D.", "command": ["true"]}]`, 0o644)
		}, false},
		{"a new pack", func() { w.put("P100a/SKILL.md", document("p100a", "New.", ""), 0o644) }, false},
		{"a pack for people", func() {
			w.put("p100/SKILL.md", document("p100", "One.", "disable-model-invocation: true\n"), 0o644)
		}, false},
		{"a pack that is gone", func() {
			if err := os.RemoveAll(filepath.Join(w.root, "P100a")); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"nearly all", func() {
			for i := range MaxLoaded {
				w.put(fmt.Sprintf("p%03d/SKILL.md", i), document(fmt.Sprintf("p%03d", i), "Others.", ""), 0o644)
			}
		}, false},
	} {
		c.change()
		if err := w.lib.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := index() // at once
		if c.kept && now != before {
			t.Errorf("%s: the index was made anew", c.name)
		}
		w.Ready(t.Context())
		after := index() // after some idle time
		if (after == before) != c.kept {
			t.Errorf("%s: the index is the one before: %v, want %v", c.name, after == before, c.kept)
		}
		before = after
	}
	if got := w.Best(context.Background(), "lucky", 5, w.lib.Catalog(t.Context()).ByID); len(got) != 1 {
		t.Errorf("lucky finds %d packs, want the one with the tool", len(got))
	}
}
