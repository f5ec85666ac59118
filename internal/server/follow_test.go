package server

import (
	"context"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// A told is called with each change.
type told func(wire.Note)

func (l *told) Tell(n wire.Note) { (*l)(n) }

// hearing starts a chat that has seen the packs as they are, and calls hear with each
// change that the chat is told about.
func hearing(t *testing.T, w *world, hear func(wire.Note)) *chats.Chat {
	t.Helper()
	c, err := w.srv.chats.Open(wire.Client{Transport: "test", Origin: gate.OriginClient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.Lists.Saw(c.Catalog(t.Context()))
	l := told(hear)
	c.Lists.Listen(&l)
	return c
}

// If its context ends, Refresh skips the other chats.
func TestRefreshLeavesOff(t *testing.T) {
	w := newWorld(t, triage)
	const chats = 4
	heard := make(map[int]int) // :: chat → notifications
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for i := range chats {
		hearing(t, w, func(wire.Note) {
			heard[i]++
			end()
		})
	}
	w.put("new/SKILL.md", "---\nname: new\ndescription: New.\n---\n", 0o644)
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.srv.Refresh(ctx)
	if len(heard) != 1 {
		t.Errorf("%d chats heard of the change, want the one in which the context ended", len(heard))
	}
	// The next time, the others are told what they missed, and the first chat is told
	// nothing more.
	before := 0
	for _, n := range heard {
		before = n
	}
	w.srv.Refresh(t.Context())
	if len(heard) != chats {
		t.Errorf("%d chats heard of the change, want all %d", len(heard), chats)
	}
	for i, n := range heard {
		if n != before {
			t.Errorf("chat %d heard %d notifications, want %d", i, n, before)
		}
	}
}
