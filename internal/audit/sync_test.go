package audit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// Those who append while a sync is under way share the next one, and no append
// returns before a sync that began after it had written. When a shared sync fails,
// it fails for all who share it.
func TestAppendsShareASync(t *testing.T) {
	const others = 9
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		full := errors.New("the disk is full")
		begun := 0
		ends := make(chan error)
		l.ops.sync = func(*os.File) error {
			begun++
			return <-ends
		}
		returned := make(chan error, 1+others)
		appends := func(n int) {
			for range n {
				go func() { returned <- l.Append(Entry{Event: EventDecision}) }()
			}
			synctest.Wait()
		}
		appends(1)
		appends(others)
		if begun != 1 || len(returned) != 0 {
			t.Fatalf("%d syncs began and %d appends returned, want one and none", begun, len(returned))
		}
		ends <- nil
		synctest.Wait()
		if begun != 2 || len(returned) != 1 {
			t.Fatalf("after the first sync, %d began and %d appends returned, want two and one", begun, len(returned))
		}
		if err := <-returned; err != nil {
			t.Errorf("the first append = %v, want nil", err)
		}
		appends(1) // too late for the sync that is under way
		ends <- full
		synctest.Wait()
		if len(returned) != others {
			t.Fatalf("after the second sync, %d appends returned, want %d", len(returned), others)
		}
		for range others {
			if err := <-returned; !errors.Is(err, full) {
				t.Errorf("an append whose sync failed = %v, want %v", err, full)
			}
		}
		ends <- nil
		if err := <-returned; err != nil || begun != 3 {
			t.Errorf("the last append = %v after %d syncs, want nil after three", err, begun)
		}
		l.ops.sync = (*os.File).Sync
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if r, err := Verify(path); err != nil || r.Entries != 2+others {
		t.Errorf("Verify() = %+v, %v, want %d entries", r, err, 2+others)
	}
}
