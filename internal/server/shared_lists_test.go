package server

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// countedGate counts how often the rules are consulted: each list of packs does so
// for each pack.
type countedGate struct {
	Decider
	asked atomic.Int32
}

func (g *countedGate) Forbids(kind gate.Kind, pack string) bool {
	g.asked.Add(1)
	return g.Decider.Forbids(kind, pack)
}

// count has the gate of a world counted.
func (g *countedGate) count(s *setup) {
	s.decider = func(d Decider) Decider {
		g.Decider = d
		return g
	}
}

// An edit costs no more with many chats than with one, and all of them are told about
// it, even if some have their own packs attached.
func TestManyChatsCostWhatOneDoes(t *testing.T) {
	const many = 50
	counted := new(countedGate)
	w := newWorld(t, triage+shelf, counted.count)
	heard := make(map[int][]string) // :: chat → what it was told since the last check
	start := func(i int) *chats.Chat {
		return hearing(t, w, func(n wire.Note) { heard[i] = append(heard[i], n.Method) })
	}
	texts := 0
	edit := func() (cost int32) {
		t.Helper()
		texts++
		w.put("triage/SKILL.md", "---\nname: triage\ndescription: Triage."+string(rune('a'+texts))+"\n---\n", 0o644)
		counted.asked.Store(0)
		w.refresh()
		cost = counted.asked.Load()
		for i, got := range heard {
			if !slices.Equal(got, everyList) {
				t.Errorf("chat %d heard %q, want each list once", i, got)
			}
		}
		return cost
	}
	steady := func() int32 { // what there was before an edit is known by then
		edit()
		clear(heard)
		cost := edit()
		clear(heard)
		return cost
	}
	differ := func(c *chats.Chat) { // gives the chat something of its own
		if err := w.srv.SetAttached(t.Context(), c.ID(), "notes", false); err != nil {
			t.Fatal(err)
		}
		clear(heard)
	}
	differ(start(0))
	own := steady()
	start(1)
	one := steady() - own
	if own == 0 || one == 0 {
		t.Fatalf("an edit asked %d times for a chat with something of its own, and %d times for another; want some times", own, one)
	}
	for i := range many {
		start(2 + i)
	}
	if all := steady(); all != own+one {
		t.Errorf("with %d chats an edit asked %d times, want %d as with one, and %d for the one that has something of its own", many+2, all, one, own)
	}
	const owners = 5
	for i := range owners {
		differ(start(2 + many + i))
	}
	if all := steady(); all != one+(1+owners)*own {
		t.Errorf("with %d chats that have something of their own, an edit asked %d times, want %d and %d for each", 1+owners, all, one, own)
	}
	edit()
	if len(heard) != many+2+owners {
		t.Errorf("%d chats heard of the edit, want all %d", len(heard), many+2+owners)
	}
}
