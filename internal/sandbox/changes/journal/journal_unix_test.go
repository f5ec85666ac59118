//go:build unix

package journal

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/turns"
)

// openJournal opens the journal in dir, as each server of a user does.
func openJournal(t *testing.T, dir string) *Journal {
	t.Helper()
	locks, err := turns.Open(filepath.Join(dir, "turns"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := Open(Options{
		Dir: dir, Turns: locks, MaxBytes: 1 << 20, MaxAge: time.Hour, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A server that looks for unfinished sets removes the entry of one that is
// settled. The server that just settled it does not fail because of that.
func TestFinishBesideAnotherServer(t *testing.T) {
	state, path := filepath.Join(t.TempDir(), "state"), t.TempDir()
	own, other := openJournal(t, state), openJournal(t, state)
	folder, err := tree.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	meta, err := folder.Stat()
	if err != nil {
		t.Fatal(err)
	}

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				other.Unfinished()
			}
		}
	}()
	for range 30 {
		r := own.New(record.Run{ID: "r"}, path, meta)
		if err := own.Commit(t.Context(), folder, r); err != nil {
			t.Fatalf("Commit = %v", err)
		}
		if err := own.Finish(folder, r); err != nil {
			t.Errorf("Finish beside another server = %v", err)
			break
		}
	}
	close(stop)
	<-stopped
	if left := own.Unfinished(); len(left) != 0 {
		t.Errorf("%d sets are unfinished, want none", len(left))
	}
}
