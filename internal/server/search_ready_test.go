package server

import (
	"fmt"
	"slices"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/search"
)

// Of few packs, a tool's name is found at once, before there was a quiet moment
// and before anybody opened the pack; of packs that are not attached, after one.
func TestToolsAreFoundWithTheFirstQuery(t *testing.T) {
	declare := func(pack, tool string) string {
		return fmt.Sprintf("-- %s/tools.json --\n[{\"name\": %q, \"description\": \"D.\", \"command\": [\"true\"]}]\n", pack, tool)
	}
	tree := pack("near", "Something.") + declare("near", "open_ticket") + pack("far", "Else.") + declare("far", "close_incident")
	w := newWorld(t, tree, attachOnly("near"))
	index := func() (byTool map[string]int) {
		t.Helper()
		index, ids, _ := w.srv.searched(t.Context())
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
	w.srv.Ready(t.Context())
	if got := index(); len(got) != 2 || got["ticket of near"] != 1 || got["incident of far"] != 1 {
		t.Errorf("after a quiet moment, a query finds %v, want the tools of both", got)
	}
}

// What a query goes by is made in the first quiet moment, and is there for the
// next query; after a change, it is made in the next one.
func TestReadyMakesWhatAQueryGoesBy(t *testing.T) {
	w := newWorld(t, triage+pack("notes", "Keep notes."))
	made := func() any {
		t.Helper()
		w.srv.finder.mu.Lock()
		defer w.srv.finder.mu.Unlock()
		if w.srv.finder.index == nil || w.srv.finder.of.Value() != w.lib.Catalog(t.Context()) {
			return nil
		}
		return w.srv.finder.index
	}
	if made() != nil {
		t.Error("the index was made before anybody asked for it, or had time")
	}
	w.srv.Ready(t.Context())
	first := made()
	if first == nil {
		t.Fatal("Ready made no index")
	}
	if got := w.srv.best(t.Context(), w.lib.Catalog(t.Context()), "notes", 5); len(got) != 1 || got[0].pack.ID != "notes" {
		t.Errorf("best = %v, want notes", got)
	}
	w.srv.Ready(t.Context())
	if made() != first {
		t.Error("the index was made again, with a query or in a moment after which nothing was new")
	}
	w.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644)
	w.refresh()
	if made() != nil {
		t.Error("the index is of other packs than there are")
	}
	w.srv.Ready(t.Context())
	if second := made(); second == nil || second == first {
		t.Error("Ready made no index after a change")
	}
}

// A pack that another one hides is not found, neither by its own words nor as the
// other a second time.
func TestShadowedPacksAreNotFound(t *testing.T) {
	other := t.TempDir()
	plant(t, other, pack("same", "About zebras and invoices.")+pack("alone", "Alone with invoices."))
	w := newWorld(t, pack("same", "About invoices."), func(s *setup) {
		s.packs.Roots = append(s.packs.Roots, packs.Root{Dir: other, Source: "flag", Trust: packs.TrustUser, AttachAll: true})
	})
	w.initialize()
	hidden := 0
	for _, p := range w.lib.Catalog(t.Context()).All() {
		if p.ShadowedBy != "" {
			hidden++
		}
	}
	if hidden != 1 {
		t.Fatalf("%d packs are hidden by others, want 1", hidden)
	}
	for query, want := range map[string][]string{
		"same":     {"same"},
		"invoices": {"alone", "same"},
		"zebras":   nil,
	} {
		got := ids(w.ok("capability_packs_list", map[string]any{"query": query}))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("list %q = %q, want %q", query, got, want)
		}
	}
}
