package packs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// heap returns how many bytes of memory are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second run counts what the first found to be free
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

const aDescription = 300 // bytes

// somePacks writes n packs, each with a document of size bytes and a folder of files.
func somePacks(t *testing.T, n int, size int64) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		file := filepath.Join(dir, fmt.Sprintf("pack-%d", i), "SKILL.md")
		write(t, file, fmt.Sprintf("---\nname: pack-%d\ndescription: %s\n---\n", i, strings.Repeat("d", aDescription)))
		must(t, os.Truncate(file, size)) // sparse
		for _, name := range []string{"one.md", "two.md", "data.csv"} {
			write(t, filepath.Join(filepath.Dir(file), "references", name), "x")
		}
	}
	return dir
}

func keeps(t *testing.T, dir string, x memo.Index) int64 {
	t.Helper()
	before := heap()
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: dir, AttachAll: true}}, Limits: Limits{EntryDoc: 16 << 20}, Index: x,
		clock: func() time.Time { return time.Now().Add(later) },
	}, nil)
	must(t, err)
	for _, p := range l.Catalog(t.Context()).All() {
		if !p.Valid {
			t.Fatalf("%s: %v", p.ID, p.Problems)
		}
	}
	bytes := heap() - before
	save(t, l)
	runtime.KeepAlive(l)
	return bytes
}

// What is kept of a pack is its name, its description and some hundred bytes, with or
// without an index, however large its documents are.
func TestMemoryOfPacks(t *testing.T) {
	const n, most = 200, aDescription + 900
	small, large := somePacks(t, n, 1_000), somePacks(t, 10, 5<<20)
	x := indexIn(t)
	keeps(t, small, memo.Index{}) // what is only made once
	for _, how := range []string{"without an index", "with one"} {
		if got := keeps(t, small, x) / n; got > most {
			t.Errorf("%s, %d bytes of a pack are kept, want at most %d", how, got, most)
		}
	}
	if got := keeps(t, large, memo.Index{}) / 10; got > most+2_000 { // shared by ten
		t.Errorf("%d bytes of a pack with a document of 5 MB are kept", got)
	}
}

// However often packs change, no more is kept of them, and nothing of Catalogs that
// are no longer used.
func TestMemoryOfChanges(t *testing.T) {
	const n, edits = 150, 100
	dir := somePacks(t, n, 1_000)
	x := indexIn(t)
	keeps(t, dir, x)
	l := library(t, dir, x)
	first := weak.Make(l.Catalog(t.Context()))
	before := heap()
	for i := range edits {
		pack := filepath.Join(dir, fmt.Sprintf("pack-%d", i%7*20))
		write(t, filepath.Join(pack, "SKILL.md"), fmt.Sprintf("---\nname: n-%d\ndescription: %s\n---\n", i, strings.Repeat("e", aDescription)))
		if changed, err := l.Refresh(t.Context(), []string{pack}); err != nil || !changed {
			t.Fatalf("edit %d: %v, %v", i, changed, err)
		}
	}
	if grown := heap() - before; grown > n*aDescription/2 {
		t.Errorf("after %d edits, %d bytes more are kept", edits, grown)
	}
	if first.Value() != nil {
		t.Error("the first Catalog is still there")
	}
	runtime.KeepAlive(l)
}
