package server

import (
	"slices"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// A shadowed pack is not found, neither by its own words nor as a second copy of the
// other.
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
