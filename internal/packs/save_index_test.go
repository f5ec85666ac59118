package packs

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// indexFiles is how many files an index has.
func indexFiles(t *testing.T, x Index) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.Dir, "packs-*.index"))
	must(t, err)
	return len(files)
}

// What was saved is not saved again, until something was read that differs.
func TestSaveIndexWritesWhatIsNew(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	l := library(t, dir, x)
	saves := func() bool {
		t.Helper()
		if err := os.RemoveAll(x.Dir); err != nil {
			t.Fatal(err)
		}
		save(t, l)
		return indexFiles(t, x) > 0
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

// When it could not be saved, it is not tried again before something else was read.
func TestSaveIndexThatFails(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	l := library(t, dir, Index{Dir: filepath.Join(file, "index"), Version: "1"})
	if err := l.SaveIndex(); err == nil {
		t.Error("SaveIndex into a file = nil, want an error")
	}
	if err := l.SaveIndex(); err != nil {
		t.Errorf("SaveIndex with nothing new = %v, want that it does nothing", err)
	}
}

// No index is written of a root whose stamps mean nothing to another process, and
// none of one that is not there; of others beside it, there is one.
func TestSaveIndexOfRootsThatLast(t *testing.T) {
	dir, other, x := writeTree(t, someTree), writeTree(t, "-- z/SKILL.md --\nPACK z\n"), indexIn(t)
	needStamps(t, dir)
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: dir}, {Dir: other}, {Dir: filepath.Join(dir, "nowhere")}}, Index: x,
		clock: func() time.Time { return time.Now().Add(later) },
	}, nil)
	must(t, err)
	if !l.memos[0].lasts || !l.memos[1].lasts {
		t.Fatal("the stamps of a root on a file system of this machine do not last")
	}
	l.memos[0].lasts = false // as if it were on a remote one
	save(t, l)
	if _, err := os.Stat(x.file(dir).Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the index of a root whose stamps do not last: %v, want none", err)
	}
	if _, err := os.Stat(x.file(other).Path); err != nil || indexFiles(t, x) != 1 {
		t.Errorf("%d files, and of the other root: %v, want its own", indexFiles(t, x), err)
	}
}

// The stamps of a remote file system, or of the kernel's own, do not last.
func TestStampsOfTheKernelDoNotLast(t *testing.T) {
	const proc = "/proc/sys/kernel"
	if _, err := os.Stat(proc); err != nil {
		t.Skipf("proc: %v", err)
	}
	x := indexIn(t)
	l := library(t, proc, x)
	if m := l.memos[0]; m.lasts || m.tree == "" {
		t.Errorf("lasts is %v, with a tree of %d bytes, want a tree that does not last", m.lasts, len(m.tree))
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

// Whoever saves an index clears away what nobody used for long, once.
func TestSaveIndexSweeps(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	old := filepath.Join(x.Dir, "packs-0123456789abcdef.index")
	forgotten := func() {
		t.Helper()
		write(t, old, "x")
		long := time.Now().Add(-2 * indexLife)
		must(t, os.Chtimes(old, long, long))
	}
	forgotten()
	l := library(t, dir, x)
	save(t, l)
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody used for long: %v, want it gone", err)
	}
	if _, err := os.Stat(x.file(dir).Path); err != nil {
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

// An index is of the limits it was made with: other ones read other things.
func TestIndexUnderOtherLimits(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	l := library(t, dir, x)
	save(t, l)
	usual := l.opts.Limits
	if _, err := x.load(dir, usual); err != nil {
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
		if _, err := x.load(dir, limits); !errors.Is(err, errIndex) {
			t.Errorf("load under another limit %s = %v, want %v", name, err, errIndex)
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

// Of an index that is larger than any may be, nothing is read, whatever it says.
func TestIndexThatIsTooLarge(t *testing.T) {
	dir, x := writeTree(t, "-- a/SKILL.md --\nPACK a\n"), indexIn(t)
	needStamps(t, dir)
	save(t, library(t, dir, x))
	file := indexFile(t, x)
	head, err := os.ReadFile(file)
	must(t, err)
	// What is too much is in the last part, as its length says. It is a hole.
	const size = maxIndex + 1
	texts := uint32(size - indexHead)
	for part := range 2 {
		texts -= binary.LittleEndian.Uint32(head[indexSum+4+4*part:])
	}
	binary.LittleEndian.PutUint32(head[indexSum+4+4*2:], texts)
	must(t, os.WriteFile(file, head, 0o600))
	must(t, os.Truncate(file, size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = x.load(dir, Limits{}.withDefaults())
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errIndex) {
		t.Errorf("load = %v, want %v", err, errIndex)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it took %d bytes of memory to see that it is too large", took)
	}
}
