package finder

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/search"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// A memoryStore is a Store in memory.
type memoryStore struct {
	text   string
	loads  int
	writes int
	err    error
}

func (s *memoryStore) LoadWords() (string, error) { s.loads++; return s.text, s.err }
func (s *memoryStore) SaveWords(data []byte) error {
	s.writes++
	if s.err == nil {
		s.text = string(data)
	}
	return s.err
}

// start replaces the finder by a new one, as the next start does, and prepares it.
func (w *world) start(store Store) {
	w.t.Helper()
	w.Finder = New(w.lib.Catalog, toolfiles.New(tools.Limits{}, ""))
	if err := w.Prepare(w.t.Context(), store); err != nil {
		w.t.Fatal(err)
	}
}

// isAnew checks that the finder has the index that would be made anew.
func (w *world) isAnew(when string) {
	w.t.Helper()
	if w.index == nil {
		w.t.Fatalf("%s: there is no index", when)
	}
	want := New(w.lib.Catalog, toolfiles.New(tools.Limits{}, ""))
	want.searched(w.t.Context())
	if diff := cmp.Diff(want.index, w.index, cmp.AllowUnexported(search.Index{})); diff != "" {
		w.t.Errorf("%s: the index (-made anew +got):\n%s", when, diff)
	}
	if !slices.Equal(w.ids, want.ids) || !slices.Equal(w.marks, want.marks) {
		w.t.Errorf("%s: other ids or marks than made anew", when)
	}
}

func many(n int) string {
	var tree strings.Builder
	for i := range n {
		tree.WriteString(pack(fmt.Sprintf("p%03d", i), fmt.Sprintf("One of many, the %dth.", i)))
	}
	return tree.String()
}

// The index is made before the first query, and the next start takes what was stored,
// as far as the packs are the same.
func TestPrepare(t *testing.T) {
	w := newWorld(t, many(MaxLoaded+5))
	store := &memoryStore{err: errors.New("nothing is stored")}
	if err := w.Prepare(t.Context(), store); !errors.Is(err, store.err) {
		t.Errorf("Prepare with a store that fails: %v, want %v", err, store.err)
	}
	w.isAnew("nothing stored")

	store.err = nil
	for round, writes := range []int{2, 2} { // the second finds nothing to write
		w.start(store)
		w.isAnew(fmt.Sprint("start ", round))
		if store.writes != writes {
			t.Errorf("start %d: it was written %d times, want %d", round, store.writes, writes)
		}
	}
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"a changed description", func() { w.put("p007/SKILL.md", "---\nname: p007\ndescription: Else.\n---\n", 0o644) }},
		{"a new pack", func() { w.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644) }},
		{"damage", func() { store.text = store.text[:len(store.text)/2] }},
		{"more than an index", func() { store.text += "x" }},
		{"other packs", func() {
			other := newWorld(t, many(MaxLoaded+1))
			if err := other.Prepare(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		c.change()
		w.refresh()
		before := store.writes
		w.start(store)
		w.isAnew(c.name)
		if store.writes != before+1 {
			t.Errorf("%s: it was written %d times, want once", c.name, store.writes-before)
		}
	}
}

// What is stored is used without a look at the texts again.
func TestPrepareTakesWhatIsStored(t *testing.T) {
	w := newWorld(t, many(MaxLoaded+5))
	store := new(memoryStore)
	w.start(store)
	odd := w.index
	w.index = search.New(func(yield func(search.Document) bool) {
		for range w.ids {
			if !yield(search.Document{Name: "marker"}) {
				return
			}
		}
	})
	store.text = string(w.stored())
	w.start(store)
	if got := w.Best(t.Context(), "marker", 1, w.lib.Catalog(t.Context()).ByID); len(got) != 1 {
		t.Errorf("Best = %v: the stored index was not used", got)
	}
	// An index of other documents than its ids is none.
	w.index = odd
	w.ids, w.marks = w.ids[1:], w.marks[1:]
	store.text = string(w.stored())
	w.start(store)
	w.isAnew("an id too few")
}

// What is stored does not depend on which tools are known, and with the names of tools
// that are known later, the index is as ever.
func TestPrepareWithTools(t *testing.T) {
	tree := many(MaxLoaded+5) + "-- p003/tools.json --\n[{\"name\": \"lucky\", \"description\": \"D.\", \"command\": [\"true\"]}]\n"
	w := newWorld(t, tree)
	store := new(memoryStore)
	w.start(store)
	without := store.text
	w.Finder = New(w.lib.Catalog, toolfiles.New(tools.Limits{}, ""))
	if !w.files.HasTools(w.lib.Catalog(t.Context()).ByID("p003")) {
		t.Fatal("p003 has no tool")
	}
	if err := w.Prepare(t.Context(), store); err != nil || store.text != without || store.writes != 1 {
		t.Errorf("Prepare with a known tool: %v, %d writes; want the same as without", err, store.writes)
	}
	for w.Ready(t.Context()) {
	}
	if got := w.Best(t.Context(), "lucky", 1, w.lib.Catalog(t.Context()).ByID); len(got) != 1 || got[0].Pack.ID != "p003" {
		t.Errorf("Best = %v, want p003", got)
	}
}

// Tools of few packs would be compiled for the index, so it is not made before it is
// needed.
func TestPrepareWithFewPacks(t *testing.T) {
	w := newWorld(t, many(3))
	store := new(memoryStore)
	w.start(store)
	if w.index != nil || store.loads+store.writes > 0 {
		t.Errorf("index: %v, loads: %d, writes: %d; want none", w.index != nil, store.loads, store.writes)
	}
}
