package journal

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/turns"
)

func open(t *testing.T) *Journal {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "changes")
	locks, err := turns.Open(filepath.Join(t.TempDir(), "turns"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := Open(Options{Dir: dir, Turns: locks, MaxBytes: 1 << 20, MaxAge: time.Hour, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// settled writes a settled set with the ops to disk.
func settled(t *testing.T, j *Journal, id string, bytes int64, ops ...record.Op) *record.Record {
	t.Helper()
	r := j.New(record.Run{ID: "run"}, "/x", tree.Meta{Dev: 1, Ino: 2})
	r.ID, r.Phase, r.Bytes, r.Ops = id, record.Settled, bytes, ops
	r.Made, r.Expires = r.Made.UTC().Round(0), r.Expires.UTC().Round(0)
	if err := os.Mkdir(j.dir(id), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := j.save(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A large set does not slow down the next run: the bytes of all sets are known
// without reading their changes.
func TestHeads(t *testing.T) {
	j := open(t)
	r := settled(t, j, "a", 7, record.Op{Slot: "0", Change: record.Change{Path: "CLAUDE.md"}}, record.Op{Slot: "1", Change: record.Change{Path: "\xff"}})
	whole, err := j.load("a")
	if err != nil || len(whole.Ops) != 2 || whole.Ops[1].Path != "\xff" {
		t.Fatalf("load = %+v, %v; want two changes", whole, err)
	}
	head, err := j.loadHead("a")
	if err != nil {
		t.Fatal(err)
	}
	r.Ops = nil
	if diff := cmp.Diff(r, head); diff != "" {
		t.Errorf("the head differs from the record (-record +head):\n%s", diff)
	}
	name := filepath.Join(j.dir("a"), recordName)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data[:len(data)-len(data)/4], 0o600); err != nil { // the changes are cut off
		t.Fatal(err)
	}
	if _, err := j.load("a"); err == nil {
		t.Error("a record that is cut off is read")
	}
	if got := j.used(); got != 7 {
		t.Errorf("used = %d, want 7, without reading the changes", got)
	}
}

// An ID may be shortened. A full ID means its own set, even if others begin with it.
func TestFind(t *testing.T) {
	j := open(t)
	for _, id := range []string{"ab", "abc", "b"} {
		settled(t, j, id, 0)
	}
	for id, want := range map[string]int{"": 0, "a": 2, "ab": 1, "abc": 1, "b": 1, "c": 0} {
		if got := len(j.Find(id)); got != want {
			t.Errorf("Find(%q) finds %d sets, want %d", id, got, want)
		}
	}
}
