package packs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// indexFiles returns how many files an index has.
func indexFiles(t *testing.T, x memo.Index) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.Dir, "packs-*.index"))
	must(t, err)
	return len(files)
}

// What was saved is not saved again until something different was read.
func TestSaveIndexWritesWhatIsNew(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	l := library(t, dir, x)
	saves := func() bool {
		t.Helper()
		if err := os.RemoveAll(x.Dir); err != nil {
			t.Fatal(err)
		}
		wrote, err := l.SaveIndex(t.Context())
		if is := indexFiles(t, x) > 0; err != nil || wrote != is {
			t.Fatalf("SaveIndex = %v, %v, and that there is a file is %v", wrote, err, is)
		}
		return wrote
	}
	if !saves() {
		t.Error("the first SaveIndex wrote nothing")
	}
	if saves() {
		t.Error("SaveIndex wrote again what it had written")
	}
	must(t, l.Rescan(t.Context()))
	if saves() {
		t.Error("SaveIndex wrote again after a scan that read nothing")
	}
	write(t, filepath.Join(dir, "a", "SKILL.md"), "---\nname: a\ndescription: new\n---\n")
	must(t, l.Rescan(t.Context()))
	if !saves() {
		t.Error("SaveIndex wrote nothing after a change")
	}
	must(t, l.Rescan(t.Context()))
	if saves() {
		t.Error("SaveIndex wrote again after the change")
	}
}

// If saving failed, the next call tries again.
func TestSaveIndexThatFails(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	x := memo.Index{Dir: filepath.Join(file, "index"), Version: "1"}
	l := library(t, dir, x)
	for range 2 {
		if wrote, err := l.SaveIndex(t.Context()); wrote || err == nil {
			t.Errorf("SaveIndex into a file = %v, %v, want an error", wrote, err)
		}
	}
	must(t, os.Remove(file))
	if wrote, err := l.SaveIndex(t.Context()); !wrote || err != nil {
		t.Errorf("SaveIndex after an error = %v, %v, want that it writes", wrote, err)
	}
	if n := indexFiles(t, x); n != 1 {
		t.Errorf("%d files are in the index, want one", n)
	}
}

// If ctx ends, roots that were not reached are left for the next call, and an error
// of one root does not affect the others.
func TestSaveIndexOfSomeRoots(t *testing.T) {
	roots := []string{writeTree(t, "-- a/SKILL.md --\nPACK a\n"), writeTree(t, "-- b/SKILL.md --\nPACK b\n"), writeTree(t, "-- c/SKILL.md --\nPACK c\n")}
	needStamps(t, roots[0])
	x := indexIn(t)
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: roots[0]}, {Dir: roots[1]}, {Dir: roots[2]}}, Index: x,
		clock: func() time.Time { return time.Now().Add(later) },
	}, nil)
	must(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	if wrote, err := l.SaveIndex(ended); wrote || !errors.Is(err, context.Canceled) || indexFiles(t, x) != 0 {
		t.Errorf("SaveIndex when ctx ended = %v, %v, with %d files, want none", wrote, err, indexFiles(t, x))
	}
	// A file cannot replace a folder.
	bad := filepath.Join(indexFileOf(t, x, roots[1]), "x")
	must(t, os.MkdirAll(bad, 0o700))
	if wrote, err := l.SaveIndex(t.Context()); !wrote || err == nil || indexFiles(t, x) != 3 {
		t.Errorf("SaveIndex = %v, %v, with %d files, want an error and two files beside the folder", wrote, err, indexFiles(t, x))
	}
	must(t, os.RemoveAll(filepath.Dir(bad)))
	if wrote, err := l.SaveIndex(t.Context()); !wrote || err != nil || indexFiles(t, x) != 3 {
		t.Errorf("SaveIndex = %v, %v, with %d files, want the third", wrote, err, indexFiles(t, x))
	}
}

// No index is written for a root whose stamps are meaningless in another process, or
// for a missing one; other roots get one.
func TestSaveIndexOnlyOfPermanentRoots(t *testing.T) {
	dir, other, x := writeTree(t, someTree), writeTree(t, "-- z/SKILL.md --\nPACK z\n"), indexIn(t)
	needStamps(t, dir)
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: dir}, {Dir: other}, {Dir: filepath.Join(dir, "nowhere")}}, Index: x,
		clock: func() time.Time { return time.Now().Add(later) },
	}, nil)
	must(t, err)
	if !l.memos[0].Lasts || !l.memos[1].Lasts {
		t.Fatal("the stamps of a root on a file system of this machine do not last")
	}
	l.memos[0].Lasts = false // as on a remote file system
	save(t, l)
	if _, err := os.Stat(indexFileOf(t, x, dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the index of a root whose stamps do not last: %v, want none", err)
	}
	if _, err := os.Stat(indexFileOf(t, x, other)); err != nil || indexFiles(t, x) != 1 {
		t.Errorf("%d files, and of the other root: %v, want its own", indexFiles(t, x), err)
	}
}

// The stamps of a remote file system, or of the kernel's own, are not kept.
func TestStampsOfTheKernelDoNotLast(t *testing.T) {
	const proc = "/proc/sys/kernel"
	if _, err := os.Stat(proc); err != nil {
		t.Skipf("proc: %v", err)
	}
	x := indexIn(t)
	l := library(t, proc, x)
	if m := l.memos[0]; m.Lasts || m.IsEmpty() {
		t.Errorf("lasts is %v, and that nothing is remembered is %v, want something that does not last", m.Lasts, m.IsEmpty())
	}
	save(t, l)
	if n := indexFiles(t, x); n != 0 {
		t.Errorf("%d files are in the index, want none", n)
	}
	before := l.reads()
	must(t, l.Rescan(t.Context()))
	if before == 0 || l.reads() != before {
		t.Errorf("%d were read again of %d, want all: nothing is remembered", l.reads(), before)
	}
}

// Saving an index removes files that were not used for long, once.
func TestSaveIndexSweeps(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	old := filepath.Join(x.Dir, "packs-0123456789abcdef.index")
	forgotten := func() {
		t.Helper()
		write(t, old, "x")
		long := time.Now().Add(-2 * indexKept)
		must(t, os.Chtimes(old, long, long))
	}
	forgotten()
	l := library(t, dir, x)
	save(t, l)
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody used for long: %v, want it gone", err)
	}
	if _, err := os.Stat(indexFileOf(t, x, dir)); err != nil {
		t.Errorf("what was just saved: %v", err)
	}
	forgotten()
	write(t, filepath.Join(dir, "a", "SKILL.md"), "---\nname: a\ndescription: new\n---\n")
	must(t, l.Rescan(t.Context()))
	save(t, l)
	if _, err := os.Stat(old); err != nil {
		t.Errorf("the second time: %v, want that nobody looks again", err)
	}
}

// Half-written files of killed programs are removed too, once they are old.
func TestSaveIndexSweepsWhatIsUnfinished(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	name := func(base string) string { return filepath.Join(x.Dir, "."+base+".new") }
	l := library(t, dir, x)
	// The index is written under that name, which fails if a folder is there.
	own := name(filepath.Base(indexFileOf(t, x, dir)))
	must(t, os.MkdirAll(filepath.Join(own, "x"), 0o700))
	if _, err := l.SaveIndex(t.Context()); err == nil {
		t.Fatal("SaveIndex with a folder in the place of what it writes = nil: that has another name")
	}
	must(t, os.RemoveAll(own))
	old, young, other := name("packs-0123456789abcdef.index"), name("packs-0123456789abcdee.index"), name("other")
	for _, path := range []string{old, young, other} {
		write(t, path, "x")
		if long := time.Now().Add(-2 * indexKept); path != young {
			must(t, os.Chtimes(path, long, long))
		}
	}
	save(t, library(t, dir, x))
	for path, want := range map[string]bool{old: false, young: true, other: true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", filepath.Base(path), err, want)
		}
	}
}

// An index is only valid for the limits it was made with, since other limits read
// other things.
func TestIndexUnderOtherLimits(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	l := library(t, dir, x)
	save(t, l)
	usual := l.opts.Limits
	if _, err := x.Load(dir, usual.settings()); err != nil {
		t.Fatalf("load under the same limits: %v", err)
	}
	for name, less := range map[string]func(*Limits){
		"of an entry document": func(l *Limits) { l.EntryDoc-- },
		"of frontmatter":       func(l *Limits) { l.Frontmatter-- },
		"of a file with tools": func(l *Limits) { l.ToolsFile-- },
		"of all, each that of others": func(l *Limits) {
			*l = Limits{EntryDoc: int64(l.Frontmatter), Frontmatter: int(l.EntryDoc), ToolsFile: l.EntryDoc}
		},
	} {
		limits := usual
		less(&limits)
		if _, err := x.Load(dir, limits.settings()); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("load under another limit %s = %v, want that it is not an index of that", name, err)
		}
	}
	other, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: dir, AttachAll: true}}, Index: x, Limits: Limits{EntryDoc: 10},
		clock: func() time.Time { return time.Now().Add(later) },
	}, nil)
	must(t, err)
	for _, p := range other.Catalog(t.Context()).All() {
		if p.Valid && !p.Loose {
			t.Errorf("%q is valid, though its document is larger than the limit", p.ID)
		}
	}
}
