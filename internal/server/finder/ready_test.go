package finder

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/search"
)

// With few packs, a tool's name is found at once, without idle time and before
// anybody opened the pack. For packs that are not attached, it takes idle time.
func TestToolsAreFoundWithTheFirstQuery(t *testing.T) {
	declare := func(pack, tool string) string {
		return fmt.Sprintf("-- %s/tools.json --\n[{\"name\": %q, \"description\": \"D.\", \"command\": [\"true\"]}]\n", pack, tool)
	}
	tree := pack("near", "Something.") + declare("near", "open_ticket") + pack("far", "Else.") + declare("far", "close_incident")
	w := newWorld(t, tree, "near")
	index := func() (byTool map[string]int) {
		t.Helper()
		index, ids, _ := w.searched(t.Context())
		byTool = make(map[string]int)
		for _, word := range []string{"ticket", "incident"} {
			for _, h := range index.Search(word, 10, search.Filter{}) {
				byTool[word+" of "+ids[h.Index]]++
			}
		}
		return byTool
	}
	if got := index(); len(got) != 1 || got["ticket of near"] != 1 {
		t.Errorf("the first query finds %v, want the tool of the pack that is attached", got)
	}
	w.Ready(t.Context())
	if got := index(); len(got) != 2 || got["ticket of near"] != 1 || got["incident of far"] != 1 {
		t.Errorf("after a quiet moment, a query finds %v, want the tools of both", got)
	}
}

// The index is made in the first idle time and is ready for the next query. After a
// change, it is made again in the next idle time.
func TestReadyBuildsTheIndex(t *testing.T) {
	w := newWorld(t, pack("triage", "Sort incidents.")+pack("notes", "Keep notes."))
	made := func() any {
		t.Helper()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.index == nil || w.of.Value() != w.lib.Catalog(t.Context()) {
			return nil
		}
		return w.index
	}
	if made() != nil {
		t.Error("the index was made before anybody asked for it, or had time")
	}
	w.Ready(t.Context())
	first := made()
	if first == nil {
		t.Fatal("Ready made no index")
	}
	if got := w.Best(t.Context(), "notes", 5, w.lib.Catalog(t.Context()).ByID); len(got) != 1 || got[0].Pack.ID != "notes" {
		t.Errorf("best = %v, want notes", got)
	}
	w.Ready(t.Context())
	if made() != first {
		t.Error("the index was made again, with a query or in a moment after which nothing was new")
	}
	w.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644)
	w.refresh()
	if made() != nil {
		t.Error("the index is of other packs than there are")
	}
	w.Ready(t.Context())
	if second := made(); second == nil || second == first {
		t.Error("Ready made no index after a change")
	}
}

// The names of tools are read in as many steps as needed, or until nobody needs them
// any more. The index is made in the last step.
func TestReadyReadsAll(t *testing.T) {
	var tree strings.Builder
	for i := range MaxLoaded + 1 {
		fmt.Fprintf(&tree, "%s-- p%03d/tools.json --\n[{\"name\": \"common_thread\", \"description\": \"D.\", \"command\": [\"true\"]}]\n", pack(fmt.Sprintf("p%03d", i), "One of many."), i)
	}
	w := newWorld(t, tree.String())
	named := func() (n int) {
		for _, p := range w.lib.Catalog(t.Context()).All() {
			if len(w.files.Names(p)) > 0 {
				n++
			}
		}
		return n
	}
	ctx := &endsAfter{Context: t.Context(), left: 50}
	for w.ready(ctx, 1) {
	}
	if n := named(); n == 0 || n > 50 || w.index != nil {
		t.Errorf("the names of %d packs were read, and there is an index: %v; want some, and none", n, w.index != nil)
	}
	for before := named(); before < MaxLoaded; before++ {
		if did := w.ready(t.Context(), 1); !did || named() != before+1 || w.index != nil {
			t.Fatalf("a step reads the names of %d packs, and there is an index: %v; want one, and none", named()-before, w.index != nil)
		}
	}
	if !w.ready(t.Context(), 1) || w.ready(t.Context(), 1) {
		t.Error("the last step does nothing, or the one after it something")
	}
	if n := named(); n != MaxLoaded+1 || w.index == nil {
		t.Errorf("the names of %d packs were read, and there is an index: %v; want all, and one", n, w.index != nil)
	}
}

// endsAfter is a context that ends after it was asked a number of times.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}
