package turns

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
)

// A run signs each lock when it gets it, even while it waits for another, so that
// nobody is told of a run that ended long ago.
func TestHolderIsNotAnEarlierRun(t *testing.T) {
	turns, err := Open(filepath.Join(t.TempDir(), "turns"))
	do(t, err)
	// Locks are taken by key, and the folder's own has to come before the one above.
	one, other := t.TempDir(), t.TempDir()
	a, err := keyOf(one)
	do(t, err)
	b, err := keyOf(other)
	do(t, err)
	sub, dir := one, other
	if b < a {
		sub, dir = other, one
	}
	do(t, os.Rename(sub, filepath.Join(dir, "sub")))
	sub = filepath.Join(dir, "sub")
	run := func(id string) Holder { return Holder{Run: record.Run{ID: id}, PID: os.Getpid()} }
	early, err := turns.Take(t.Context(), run("early"), true, nil, sub)
	do(t, err)
	early.Release()
	first, err := turns.Take(t.Context(), run("first"), true, nil, dir)
	do(t, err)
	defer first.Release()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	waits := make(chan Holder, 1)
	wg.Go(func() {
		if lock, err := turns.Take(ctx, run("second"), true, func(h Holder) { waits <- h }, sub); err == nil {
			t.Error("the second run did not wait")
			lock.Release()
		}
	})
	if h := <-waits; h.Run.ID != "first" {
		t.Errorf("the second run waits for %v, want first", h)
	}
	holder := Holder{}
	short, stop := context.WithCancel(t.Context())
	defer stop()
	if lock, err := turns.Take(short, run("third"), true, func(h Holder) { holder = h; stop() }, sub); err == nil {
		t.Error("the third run did not wait")
		lock.Release()
	}
	if holder.Run.ID != "first" && holder.Run.ID != "second" {
		t.Errorf("the third run waits for %v, want first or second", holder)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
