package audit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// Appends during a sync share the next one, and no append returns before a sync
// that began after its write. A shared sync that fails, fails for every append
// that shares it.
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
		appends(1) // too late for the sync in progress
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
		// The failed sync may have been about its bytes too, and a system
		// reports that only once.
		ends <- nil
		if err := <-returned; !errors.Is(err, full) || begun != 3 {
			t.Errorf("the append that wrote during a sync that failed = %v after %d syncs, want %v after three", err, begun, full)
		}
		appends(1)
		ends <- nil
		if err := <-returned; err != nil || begun != 4 {
			t.Errorf("the last append = %v after %d syncs, want nil after four", err, begun)
		}
		l.ops.sync = (*os.File).Sync
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if r, err := Verify(path); err != nil || r.Entries != 3+others {
		t.Errorf("Verify() = %+v, %v, want %d entries", r, err, 3+others)
	}
}

// It does not matter whose sync failed: for an entry written before it, the next
// sync succeeds although the bytes may be lost.
func TestEveryWriterHearsOfAFailedSync(t *testing.T) {
	failed := errors.New("input/output error")
	e := Entry{Event: EventDecision}
	for _, tc := range []struct {
		name string
		sync func(*Log) error // makes a sync that fails
	}{
		{"of another append", func(l *Log) error { return l.Append(e) }},
		{"before the file is renamed", func(l *Log) error {
			l.opts.MaxSize = 1
			defer func() { l.opts.MaxSize = 0 }()
			return l.Append(e)
		}},
		{"of a file that another process renamed", func(l *Log) error {
			return errors.Join(os.Rename(l.path, rotatedName(l.path, 1)), l.Append(e))
		}},
		{"when the log is closed", (*Log).Close},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			synctest.Test(t, func(t *testing.T) {
				l, err := Open(path, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := l.AppendLazy(e); err != nil {
					t.Fatal(err)
				}
				w, err := l.append([]Entry{e}, false) // an append that arrives too late for that sync
				if err != nil {
					t.Fatal(err)
				}
				l.ops.sync = func(*os.File) error {
					l.ops.sync = (*os.File).Sync
					return failed
				}
				if err := tc.sync(l); !errors.Is(err, failed) {
					t.Errorf("whose sync failed = %v, want %v", err, failed)
				}
				if err := l.sync(w); !errors.Is(err, failed) {
					t.Errorf("an append before that = %v, want %v", err, failed)
				}
				if l.closed {
					return
				}
				if err := l.Append(e); err != nil {
					t.Errorf("an append after that = %v, want nil", err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if err := l.Append(e); !errors.Is(err, failed) {
					t.Errorf("an append after the lazy one was to be synced = %v, want %v", err, failed)
				}
				if err := l.Close(); err != nil {
					t.Errorf("Close() when all has been told = %v, want nil", err)
				}
			})
		})
	}
}

// A lazy append that was not synced before the log closed may be lost too.
func TestCloseTellsOfAnEarlierFailure(t *testing.T) {
	l, err := Open(filepath.Join(t.TempDir(), "audit.jsonl"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendLazy(Entry{Event: EventRunEnd}); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("input/output error")
	l.ops.sync = func(*os.File) error { return failed }
	if err := l.Append(Entry{Event: EventDecision}); !errors.Is(err, failed) {
		t.Errorf("Append() = %v, want %v", err, failed)
	}
	l.ops.sync = (*os.File).Sync
	if err := l.Close(); !errors.Is(err, failed) {
		t.Errorf("Close() = %v, want %v", err, failed)
	}
}
