package packs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// A folder or file that others can write to is not used: nothing is read from it, and
// nothing is written.
func TestIndexOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes: this system has none")
	}
	needStamps(t, t.TempDir())
	for name, tc := range map[string]struct {
		do      func(t *testing.T, x memo.Index)
		refused bool
	}{
		"a folder that others may write to": {func(t *testing.T, x memo.Index) { must(t, os.Chmod(x.Dir, 0o777)) }, true},
		"a sticky folder":                   {func(t *testing.T, x memo.Index) { must(t, os.Chmod(x.Dir, 0o777|os.ModeSticky)) }, true},
		"a folder of somebody else":         {func(t *testing.T, x memo.Index) { chown(t, x.Dir) }, true},
		"a file of somebody else":           {func(t *testing.T, x memo.Index) { chown(t, indexFile(t, x)) }, true},
		"a link in the file's place": {func(t *testing.T, x memo.Index) {
			file := indexFile(t, x)
			must(t, os.Rename(file, file+".real"))
			must(t, os.Symlink(file+".real", file))
		}, true},
		"a folder in the file's place": {func(t *testing.T, x memo.Index) {
			file := indexFile(t, x)
			must(t, os.Remove(file))
			must(t, os.Mkdir(file, 0o700))
		}, true},
		"a link to a folder that others may write to": {func(t *testing.T, x memo.Index) {
			moveFolder(t, x)
			must(t, os.Chmod(x.Dir+".real", 0o777))
		}, true},
		"a link to a folder of the user's":   {func(t *testing.T, x memo.Index) { moveFolder(t, x) }, false},
		"a folder that others may look into": {func(t *testing.T, x memo.Index) { must(t, os.Chmod(x.Dir, 0o755)) }, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir, x := writeTree(t, someTree), indexIn(t)
			l := library(t, dir, x)
			all := l.reads()
			save(t, l)
			tc.do(t, x)
			got := library(t, dir, x)
			want := 0
			if tc.refused {
				want = all
			}
			if got.reads() != want {
				t.Errorf("%d were read, want %d", got.reads(), want)
			}
			if diff := cmp.Diff(full(l.Catalog(t.Context())), full(got.Catalog(t.Context()))); diff != "" {
				t.Errorf("the catalog is another (-before +now):\n%s", diff)
			}
			if !strings.Contains(name, "folder") || strings.Contains(name, "in the file's place") {
				return // a file is replaced by one of the user's
			}
			write(t, filepath.Join(dir, "a", "SKILL.md"), "---\nname: a\ndescription: new\n---\n")
			must(t, got.Rescan(t.Context()))
			var refusal *private.RefusedError
			if _, err := got.SaveIndex(t.Context()); errors.As(err, &refusal) != tc.refused || err != nil && !tc.refused {
				t.Errorf("SaveIndex = %v, want it refused: %v", err, tc.refused)
			}
		})
	}
}

// chown gives a file to another user, which only root can do.
func chown(t *testing.T, path string) {
	t.Helper()
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Skipf("chown: %v", err)
	}
}

// moveFolder replaces the index's folder by a link.
func moveFolder(t *testing.T, x memo.Index) {
	t.Helper()
	must(t, os.Rename(x.Dir, x.Dir+".real"))
	must(t, os.Symlink(x.Dir+".real", x.Dir))
}

// A forged index with correct stamps can change how a pack is described, and nothing
// else: what is opened, digested and run comes from the files.
func TestPoisonedIndex(t *testing.T) {
	dir, x := writeTree(t, "-- a/SKILL.md --\nPACK a\n-- b/SKILL.md --\nPACK b\n"), indexIn(t)
	needStamps(t, dir)
	honest := library(t, dir, x)
	// The description of b for a, and tools from elsewhere.
	m := honest.memos[0]
	top := new(memo.Node)
	subs, _ := m.Read(0, top)
	below := make(map[string]*memo.Node)
	for {
		name, at, ok := subs.Next()
		if !ok {
			break
		}
		below[name] = new(memo.Node)
		if deeper, ok := m.Read(at, below[name]); !ok {
			t.Fatalf("%q cannot be read", name)
		} else if _, _, more := deeper.Next(); more {
			t.Fatalf("%q is not what this test is made for", name)
		}
	}
	a := below["a"]
	lie := below["b"].Docs[0]
	lie.Stamp = a.Docs[0].Stamp
	a.Docs, a.Tools = []memo.Record{lie}, &memo.Listing{Names: []string{"../../b/tools/t.tool.json"}}
	poisoned := func() *memo.Memo {
		var all []*memo.Node
		for _, name := range slices.Sorted(maps.Keys(below)) {
			all = append(all, below[name])
		}
		return treeOf(m.Dir, top, all...)
	}
	_, err := x.Save(poisoned(), honest.opts.Limits.settings())
	must(t, err)
	if _, err := x.Load(dir, honest.opts.Limits.settings()); err == nil {
		t.Error("an index with tools from elsewhere is read, want an error")
	}
	a.Tools = nil
	_, err = x.Save(poisoned(), honest.opts.Limits.settings())
	must(t, err)

	l := library(t, dir, x)
	if l.reads() != 0 {
		t.Fatalf("%d were read: the index was not used", l.reads())
	}
	var lied, told *Pack
	for _, p := range l.Catalog(t.Context()).All() {
		if filepath.Base(p.Dir) == "a" {
			lied = p
		}
	}
	for _, p := range honest.Catalog(t.Context()).All() {
		if filepath.Base(p.Dir) == "a" {
			told = p
		}
	}
	if lied.Name != "b" {
		t.Fatalf("the name is %q: the index was not used", lied.Name)
	}
	// What a person approves, and what a model opens.
	digest := func(p *Pack) string {
		t.Helper()
		d, err := p.OpenDir()
		must(t, err)
		defer d.Close()
		tree, err := d.Digest(t.Context(), new(packfs.DigestCache))
		must(t, err)
		return tree.Digest
	}
	if digest(lied) != digest(told) || lied.Dir != told.Dir {
		t.Errorf("%q has the digest %s, want that of %q", lied.Dir, digest(lied), told.Dir)
	}
	if lied.Entry != told.Entry {
		t.Errorf("the entry document is %q, want %q", lied.Entry, told.Entry)
	}
}

// An index is still valid after the clock was set back.
func TestIndexWithTheClockSetBack(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	save(t, library(t, dir, x))
	write(t, filepath.Join(dir, "a", "SKILL.md"), "---\nname: a\ndescription: e\n---\nbody\n")
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: dir, AttachAll: true}}, Index: x, clock: func() time.Time { return time.Now().Add(-time.Hour) },
	}, nil)
	must(t, err)
	fresh := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true}}})
	if diff := cmp.Diff(full(fresh), full(l.Catalog(t.Context()))); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
	// Files with times in the future are not remembered.
	if _, err := l.SaveIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if again := library(t, dir, x); again.reads() == 0 {
		t.Error("what was written in the future, as it seemed, was remembered")
	}
}

// treeOf returns a memo of dir and some folders in it, sorted by name.
func treeOf(dir string, top *memo.Node, below ...*memo.Node) *memo.Memo {
	w := memo.NewWriter(new(memo.Memo))
	at := w.Begin(top)
	for _, n := range below {
		w.End(w.Begin(n))
	}
	w.End(at)
	return w.Memo(dir)
}
