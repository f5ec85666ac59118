package server

import (
	"fmt"
	"strings"
	"testing"
)

// Packs that could not be read in time are missing from a list, which says so. Once
// they were read, they are in it.
func TestListSaysWhatWasNotRead(t *testing.T) {
	var tree strings.Builder
	slow := strings.Repeat("a: b: [\n", 7000)
	for i := range 40 {
		fmt.Fprintf(&tree, "-- p%02d/SKILL.md --\n---\nname: p%02d\ndescription: d\n%s---\n", i, i, slow)
	}
	w := newWorld(t, tree.String())
	w.initialize()
	got := w.ok("capability_packs_list", nil)
	hint, _ := got["hint"].(string)
	var left int
	if _, err := fmt.Sscanf(hint, "%d more packs were not read yet", &left); err != nil || left < 2 {
		t.Fatalf("hint = %q, want how many packs are left", hint)
	}
	for i := range 40 {
		w.put(fmt.Sprintf("p%02d/SKILL.md", i), fmt.Sprintf("---\nname: p%02d\ndescription: d\n---\n", i), 0o644)
	}
	w.refresh()
	if hint := w.ok("capability_packs_list", nil)["hint"]; hint != nil {
		t.Errorf("hint = %v, want none when all was read", hint)
	}
}
