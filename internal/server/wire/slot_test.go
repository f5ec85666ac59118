package wire

import (
	"context"
	"testing"
)

// A request that was cancelled while it waited needs no slot to end.
func TestSlot(t *testing.T) {
	all := NewSlots()
	ctx, cancel := context.WithCancel(t.Context())
	p := all.of("tools/call")
	if !p.take(ctx) {
		t.Fatal("there is no place")
	}
	inner := context.WithValue(ctx, slotKey{}, p)
	Aside(inner, func() {
		if len(all.work) != 0 {
			t.Error("it has its place while it waits")
		}
	})
	if len(all.work) != 1 || !p.held {
		t.Error("it has no place after it waited")
	}
	Aside(inner, func() {
		for range maxConcurrent { // others take all slots
			if !all.of("tools/call").take(t.Context()) {
				t.Error("there is no place")
			}
		}
		cancel()
	})
	if p.held {
		t.Error("it has a place that there is not")
	}
	p.give() // must not take another's slot away
	if len(all.work) != maxConcurrent {
		t.Errorf("%d places are taken, want %d", len(all.work), maxConcurrent)
	}
	if all.of("tools/list").take(ctx) {
		t.Error("a cancelled request has a place")
	}
	if p := all.of("subscriptions/listen"); p != nil || !p.take(ctx) {
		t.Error("what waits for ever takes a place")
	}
	for _, method := range []string{"resources/read", "prompts/get"} {
		if p := all.of(method); !p.take(t.Context()) || len(all.work) != maxConcurrent {
			t.Errorf("%s takes a place of the others", method)
		}
	}
	Aside(t.Context(), func() {})
}
