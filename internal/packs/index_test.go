package packs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

func TestIndex(t *testing.T) {
	needStamps(t, t.TempDir())
	for name, tc := range map[string]struct {
		do    func(t *testing.T, dir string, x *memo.Index)
		reads int // -1: everything
	}{
		"nothing happened": {func(*testing.T, string, *memo.Index) {}, 0},
		"a document": {func(t *testing.T, dir string, _ *memo.Index) {
			write(t, filepath.Join(dir, "a", "SKILL.md"), "---\nname: a\ndescription: new\n---\n")
		}, 1},
		"the same size and time": {func(t *testing.T, dir string, _ *memo.Index) {
			file := filepath.Join(dir, "a", "SKILL.md")
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, "---\nname: a\ndescription: e\n---\nbody\n")
			if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"another file in its place": {func(t *testing.T, dir string, _ *memo.Index) {
			write(t, filepath.Join(dir, "a", "new"), "---\nname: a\ndescription: e\n---\nbody\n")
			if err := os.Rename(filepath.Join(dir, "a", "new"), filepath.Join(dir, "a", "SKILL.md")); err != nil {
				t.Fatal(err)
			}
		}, 2}, // and its directory
		"a new pack": {func(t *testing.T, dir string, _ *memo.Index) {
			write(t, filepath.Join(dir, "new", "SKILL.md"), "---\nname: new\ndescription: e\n---\nbody\n")
		}, 3}, // the directory above, its own, and its document
		"another version": {func(_ *testing.T, _ string, x *memo.Index) { x.Version = "2" }, -1},
		"no index":        {func(t *testing.T, _ string, x *memo.Index) { must(t, os.RemoveAll(x.Dir)) }, -1},
		"an empty index":  {func(t *testing.T, _ string, x *memo.Index) { must(t, os.Truncate(indexFile(t, *x), 0)) }, -1},
		"half an index":   {func(t *testing.T, _ string, x *memo.Index) { must(t, os.Truncate(indexFile(t, *x), 100)) }, -1},
		"a damaged index": {func(t *testing.T, _ string, x *memo.Index) {
			data, err := os.ReadFile(indexFile(t, *x))
			must(t, err)
			data[len(data)/2] ^= 1
			must(t, os.WriteFile(indexFile(t, *x), data, 0o600))
		}, -1},
		"an index of another root": {func(t *testing.T, dir string, x *memo.Index) {
			other := writeTree(t, "-- z/SKILL.md --\nPACK z\n")
			l := library(t, other, memo.Index{Dir: x.Dir + "2", Version: x.Version})
			save(t, l)
			data, err := os.ReadFile(indexFile(t, memo.Index{Dir: x.Dir + "2"}))
			must(t, err)
			must(t, os.WriteFile(indexFile(t, *x), data, 0o600))
		}, -1},
		"an index that others may write": {func(t *testing.T, _ string, x *memo.Index) {
			if runtime.GOOS == "windows" {
				t.Skip("modes")
			}
			must(t, os.Chmod(indexFile(t, *x), 0o666))
		}, -1},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir, x := writeTree(t, someTree), indexIn(t)
			l := library(t, dir, x)
			all := l.reads()
			save(t, l)
			save(t, l) // nothing to do
			tc.do(t, dir, &x)
			got := library(t, dir, x)
			want := tc.reads
			if want < 0 {
				want = all
			}
			if got.reads() != want {
				t.Errorf("%d were read, want %d", got.reads(), want)
			}
			fresh := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true}}})
			if diff := cmp.Diff(full(fresh), full(got.Catalog(t.Context()))); diff != "" {
				t.Errorf("with the index, the catalog is another (-without +with):\n%s", diff)
			}
		})
	}
}

// Real packs are the same with an index.
func TestIndexOfRealPacks(t *testing.T) {
	dir := extract(t, shared(t, "corpora/packs.tar.gz"))
	needStamps(t, dir)
	x := indexIn(t)
	first := library(t, dir, x)
	save(t, first)
	second := library(t, dir, x)
	if second.reads() != 0 {
		t.Errorf("%d were read again", second.reads())
	}
	if diff := cmp.Diff(full(first.Catalog(t.Context())), full(second.Catalog(t.Context()))); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

// If the index cannot be written, everything else works.
func TestIndexThatCannotBeWritten(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	l := library(t, dir, memo.Index{Dir: filepath.Join(file, "index"), Version: "1"})
	if _, err := l.SaveIndex(t.Context()); err == nil {
		t.Error("SaveIndex into a file = nil, want an error")
	}
	if n := len(l.Catalog(t.Context()).All()); n != 5 {
		t.Errorf("%d packs, want 5", n)
	}
}

// Several libraries write and read one index at once, in different states.
func TestIndexOfSeveral(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 10 {
				l, err := NewLibrary(t.Context(), Options{Roots: []Root{{Dir: dir, AttachAll: true}}, Index: x, clock: func() time.Time { return time.Now().Add(later) }}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if i == 0 {
					if err := os.WriteFile(filepath.Join(dir, "a", "SKILL.md"), fmt.Appendf(nil, "---\nname: a\ndescription: %d\n---\n", j), 0o644); err != nil {
						t.Error(err)
					}
					if err := l.Rescan(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if _, err := l.SaveIndex(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	fresh := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true}}})
	if diff := cmp.Diff(full(fresh), full(library(t, dir, x).Catalog(t.Context()))); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
}

// If there are several roots, only those that changed are written.
func TestIndexOfWhatChanged(t *testing.T) {
	roots := []string{writeTree(t, "-- a/SKILL.md --\nPACK a\n"), writeTree(t, "-- b/SKILL.md --\nPACK b\n")}
	needStamps(t, roots[0])
	x := indexIn(t)
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: roots[0]}, {Dir: roots[1]}}, Index: x,
		clock: func() time.Time { return time.Now().Add(later) },
	}, nil)
	must(t, err)
	kept := func() (files []os.FileInfo) {
		t.Helper()
		save(t, l)
		for _, dir := range roots {
			info, err := os.Stat(indexFileOf(t, x, dir))
			must(t, err)
			files = append(files, info)
		}
		return files
	}
	before := kept()
	write(t, filepath.Join(roots[1], "b", "SKILL.md"), "---\nname: b\ndescription: new\n---\n")
	must(t, l.Rescan(t.Context()))
	after := kept()
	// A file is replaced as a whole.
	if !os.SameFile(before[0], after[0]) || os.SameFile(before[1], after[1]) {
		t.Errorf("written anew: %v and %v, want the second only", !os.SameFile(before[0], after[0]), !os.SameFile(before[1], after[1]))
	}
}

// An index that is used does not count as old.
func TestIndexThatIsUsedStays(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	save(t, library(t, dir, x))
	file := indexFile(t, x)
	long := time.Now().Add(-indexKept + time.Hour)
	must(t, os.Chtimes(file, long, long))
	library(t, dir, x)
	x.Sweep(time.Now().Add(24 * time.Hour))
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
