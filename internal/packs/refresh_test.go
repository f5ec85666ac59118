package packs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// later is by how much the clock of a test's scans is ahead: no program can set back
// the time of an inode's last change.
const later = 3 * time.Second

// library returns a library of dir with a clock that is a little ahead, so that what
// was just written counts as settled.
func library(t *testing.T, dir string, index memo.Index) *Library {
	t.Helper()
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: dir, AttachAll: true}}, Index: index,
		clock: func() time.Time { return time.Now().Add(later) },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// reads returns how many directories and documents the last scan opened.
func (l *Library) reads() int {
	n := 0
	for _, m := range l.memos {
		n += m.Reads
	}
	return n
}

// steps returns how many steps the frontmatter took that the last scan read.
func (l *Library) steps() int {
	n := 0
	for _, m := range l.memos {
		n += m.Steps
	}
	return n
}

func needStamps(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if packfs.StampOf(info).IsZero() || !packfs.Local(dir) {
		t.Skip("stamps: this file system has none that can be relied on")
	}
}

const someTree = "-- a/SKILL.md --\nPACK a\n-- a/docs/x.md --\nx\n-- b/SKILL.md --\nPACK b\n-- b/tools/t.tool.json --\n{}\n-- c/README.md --\nPACK c\n-- d/e/f/SKILL.md --\nPACK f\n-- tools/x.tool.json --\n{}\n"

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A second scan opens nothing if nothing changed, and one file if one changed.
func TestRefreshReadsWhatChanged(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	l := library(t, dir, memo.Index{})
	before := describe(l.Catalog(t.Context()), dir)
	first := l.Catalog(t.Context())
	for _, dirs := range [][]string{nil, {}, {dir}, {filepath.Join(dir, "a"), filepath.Join(dir, "nowhere")}} {
		changed, err := l.Refresh(t.Context(), dirs)
		if err != nil || changed || l.reads() != 0 || l.Catalog(t.Context()) != first {
			t.Errorf("Refresh(%v) = %v, %v and read %d, want nothing", dirs, changed, err, l.reads())
		}
	}
	if diff := cmp.Diff(before, describe(l.Catalog(t.Context()), dir)); diff != "" {
		t.Error(diff)
	}

	write(t, filepath.Join(dir, "d", "e", "f", "SKILL.md"), "---\nname: f\ndescription: other\n---\n")
	if changed, _ := l.Refresh(t.Context(), []string{filepath.Join(dir, "a")}); changed {
		t.Error("a change was seen where nobody was told to look")
	}
	changed, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "d", "e", "f")})
	if err != nil || !changed || l.reads() != 1 {
		t.Errorf("Refresh = %v, %v and read %d, want one document", changed, err, l.reads())
	}
	p, err := l.Catalog(t.Context()).Lookup("f")
	if err != nil || p.Description != "other" {
		t.Errorf("the pack is %+v, %v", p, err)
	}
	if p, _ := first.Lookup("f"); p.Description != "d" {
		t.Errorf("the Catalog of before has %q now", p.Description)
	}
}

// What was written less than two seconds before it was read is read again.
func TestRefreshRereadsRecentFiles(t *testing.T) {
	dir := writeTree(t, someTree)
	l, err := NewLibrary(t.Context(), Options{Roots: []Root{{Dir: dir}}, clock: func() time.Time { return time.Now().Add(-time.Hour) }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Rescan(t.Context()); err != nil || l.reads() < 10 {
		t.Errorf("Rescan = %v and read %d, want everything: the clock was set back", err, l.reads())
	}
}

// indexIn returns an index in a new folder.
func indexIn(t *testing.T) memo.Index {
	return memo.Index{Dir: filepath.Join(t.TempDir(), "index"), Version: "1"}
}

func save(t *testing.T, l *Library) {
	t.Helper()
	if _, err := l.SaveIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func indexFile(t *testing.T, x memo.Index) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.Dir, "packs-*.index"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of the index: %q, %v", files, err)
	}
	return files[0]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// full returns everything that can be seen of a catalog.
func full(c *Catalog) []string {
	var lines []string
	for _, p := range c.All() {
		lines = append(lines, fmt.Sprintf("%q %q %q %q %q %q %q %q %v %v %v %v %+v %v", p.ID, p.Name, p.Description, p.Tags(), p.Modes(), p.Dir, p.Entry, p.ToolFiles,
			p.Valid, p.Attached, p.Loose, p.ShadowedBy, p.Frontmatter, p.Problems))
	}
	for _, d := range c.Problems() {
		lines = append(lines, d.String())
	}
	return lines
}

// indexFileOf returns the path of a root's file in the index. The file may not exist.
func indexFileOf(t *testing.T, x memo.Index, root string) string {
	t.Helper()
	other := memo.Index{Dir: filepath.Join(t.TempDir(), "index"), Version: x.Version}
	save(t, library(t, root, other))
	return filepath.Join(x.Dir, filepath.Base(indexFile(t, other)))
}

// indexKept is how long package memo keeps an unused index.
const indexKept = 30 * 24 * time.Hour

// One pack with more folders, files or bytes than any real one keeps no other from
// being found.
func TestHugePack(t *testing.T) {
	dir := writeTree(t, "-- a/many/SKILL.md --\nPACK many\n-- b/SKILL.md --\nPACK b\n-- c/x --\n-- z/SKILL.md --\nPACK z\n")
	bound := bounds{packDirs: 50}
	for i := range bound.packDirs + 10 {
		must(t, os.Mkdir(filepath.Join(dir, "a", "many", fmt.Sprint(i)), 0o755))
	}
	must(t, os.Truncate(filepath.Join(dir, "b", "SKILL.md"), 1<<30)) // sparse
	if err := os.Symlink("..", filepath.Join(dir, "a", "many", "loop")); err != nil {
		t.Logf("symlinks: %v", err)
	}
	l, err := NewLibrary(t.Context(), Options{Roots: []Root{{Dir: dir, AttachAll: true}}, bounds: bound}, nil)
	must(t, err)
	want := []string{"a/many = a/many/SKILL.md", "b = b/SKILL.md invalid entry-too-large", "z = z/SKILL.md", "! " + CodeTooManyDirs}
	if diff := cmp.Diff(want, describe(l.Catalog(t.Context()), dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A change beside the pack does not make it be scanned again.
	write(t, filepath.Join(dir, "z", "SKILL.md"), "---\nname: z\ndescription: new\n---\n")
	changed, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "z")})
	if err != nil || !changed || l.reads() > 3 {
		t.Errorf("Refresh = %v, %v and read %d, want a few", changed, err, l.reads())
	}
}

// A scan looks below a directory that was renamed to another's name, even if nothing
// happened in it.
func TestRefreshBelowWhatWasSwapped(t *testing.T) {
	dir := writeTree(t, "-- a/inner/one/SKILL.md --\nPACK one\n-- b/x --\n")
	l := library(t, dir, memo.Index{})
	for _, names := range [][2]string{{"a", "c"}, {"b", "a"}, {"c", "b"}} {
		must(t, os.Rename(filepath.Join(dir, names[0]), filepath.Join(dir, names[1])))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "a", "inner", "one"), 0o755))
	write(t, filepath.Join(dir, "a", "inner", "one", "SKILL.md"), "---\nname: one\ndescription: another\n---\n")
	_, err := l.Refresh(t.Context(), []string{dir, filepath.Join(dir, "a"), filepath.Join(dir, "b")})
	must(t, err)
	fresh := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true}}})
	if diff := cmp.Diff(full(fresh), full(l.Catalog(t.Context()))); diff != "" {
		t.Errorf("(-new scan +there):\n%s", diff)
	}
}

// Nothing is reported about a missing root that nobody named. If it exists but cannot
// be read, that is reported. Its packs are found once it exists.
func TestOptionalRoot(t *testing.T) {
	base := writeTree(t, "-- one/a/SKILL.md --\nPACK a\n-- file --\n-- later/.store/b/SKILL.md --\nPACK b\n")
	at := func(name string) string { return filepath.Join(base, name) }
	lib, err := NewLibrary(t.Context(), Options{Roots: []Root{
		{Dir: at("one")}, {Dir: at("gone"), Optional: true}, {Dir: at("far/away"), Optional: true}, {Dir: at("file"), Optional: true},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a = one/a/SKILL.md", "! root-unreadable"}
	if diff := cmp.Diff(want, describe(lib.Catalog(t.Context()), base)); diff != "" {
		t.Errorf("without them (-want +got):\n%s", diff)
	}
	for _, step := range []struct{ from, to string }{{"later/.store", "gone"}, {"gone", "later/.store"}} {
		if err := os.Rename(at(step.from), at(step.to)); err != nil {
			t.Fatal(err)
		}
		if changed, err := lib.Refresh(t.Context(), nil); err != nil || !changed {
			t.Errorf("Refresh = %v, %v, want that it changed", changed, err)
		}
		want := []string{"a = one/a/SKILL.md", "! root-unreadable"}
		if step.to == "gone" {
			want = []string{"a = one/a/SKILL.md", "b = gone/b/SKILL.md", "! root-unreadable"}
		}
		if diff := cmp.Diff(want, describe(lib.Catalog(t.Context()), base)); diff != "" {
			t.Errorf("with %q at %q (-want +got):\n%s", step.from, step.to, diff)
		}
	}
}

// The target of a link can change without any event for the pack.
func TestRefreshOfLinkedTools(t *testing.T) {
	dir := writeTree(t, "-- a/SKILL.md --\nPACK a\n-- a/shared/real.json --\n{}\n")
	needStamps(t, dir)
	if l := library(t, dir, memo.Index{}); l.Concerns("real.json") || !l.Concerns("SKILL.md") || !l.Concerns("tools.json") || !l.Concerns("x.tool.json") {
		t.Error("without a link, any file concerns a pack, or one that declares something does not")
	}
	if err := os.Symlink(filepath.Join("shared", "real.json"), filepath.Join(dir, "a", "tools.json")); err != nil {
		t.Skipf("symlinks: %v", err)
	}
	l := library(t, dir, memo.Index{})
	shared := filepath.Join(dir, "a", "shared")
	if changed, err := l.Refresh(t.Context(), []string{shared}); err != nil || changed {
		t.Fatalf("Refresh = %v, %v, want no change", changed, err)
	}
	write(t, filepath.Join(shared, "real.json"), "[]")
	if changed, err := l.Refresh(t.Context(), []string{shared}); err != nil || !changed {
		t.Errorf("Refresh after an edit = %v, %v, want a change", changed, err)
	}
	if !l.Concerns("real.json") {
		t.Error("what a link leads to does not concern the pack")
	}
	must(t, os.Remove(filepath.Join(shared, "real.json")))
	if changed, err := l.Refresh(t.Context(), []string{shared}); err != nil || !changed {
		t.Errorf("Refresh after it went = %v, %v, want a change", changed, err)
	}
	write(t, filepath.Join(shared, "real.json"), "{}")
	if changed, err := l.Refresh(t.Context(), []string{shared}); err != nil || !changed {
		t.Errorf("Refresh after it came back = %v, %v, want a change", changed, err)
	}
}

// A link in a folder of packs that leads nowhere is followed once its target exists.
func TestRefreshOfLinksThatLeadNowhere(t *testing.T) {
	dir := writeTree(t, "-- x/note.txt --\nx\n-- a/x --\nx\n")
	if err := os.Symlink(filepath.Join("..", "x", "pack"), filepath.Join(dir, "a", "link")); err != nil {
		t.Skipf("symlinks: %v", err)
	}
	must(t, os.Symlink(filepath.Join("..", "x", "pack", "SKILL.md"), filepath.Join(dir, "a", "SKILL.md")))
	l := library(t, dir, memo.Index{})
	write(t, filepath.Join(dir, "x", "pack", "SKILL.md"), "---\nname: late\ndescription: d\n---\n")
	_, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "x"), filepath.Join(dir, "x", "pack")})
	must(t, err)
	fresh := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true}}})
	if diff := cmp.Diff(full(fresh), full(l.Catalog(t.Context()))); diff != "" {
		t.Errorf("(-new scan +there):\n%s", diff)
	}
}

// A modification time in the future, as some archives have, is not a change.
func TestRefreshWithTimesInTheFuture(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	then := time.Now().Add(1000 * time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "a", "SKILL.md"), then, then))
	must(t, os.Chtimes(filepath.Join(dir, "a"), then, then))
	l := library(t, dir, memo.Index{})
	if changed, err := l.Refresh(t.Context(), nil); err != nil || changed || l.reads() != 0 {
		t.Errorf("Refresh = %v, %v and read %d, want nothing", changed, err, l.reads())
	}
}

// What a person attached already counts while the folders are scanned, and many
// requests after that cause only one scan.
func TestCatalogForMany(t *testing.T) {
	dir := writeTree(t, someTree)
	store := attach.Open(filepath.Join(t.TempDir(), "attached.json"))
	var scans atomic.Int32
	l, err := NewLibrary(t.Context(), Options{
		Roots: []Root{{Dir: dir}}, clock: func() time.Time { scans.Add(1); return time.Now() },
	}, store)
	must(t, err)
	scans.Store(0)
	must(t, store.Update(func(s *attach.Set) error {
		s.Attach("a", attach.Entry{Dir: filepath.Join(dir, "a")})
		return nil
	}))
	ask := func(want int) {
		t.Helper()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if n := len(l.Catalog(t.Context()).Attached()); n != want {
					t.Errorf("%d packs are attached, want %d", n, want)
				}
			})
		}
		all.Wait()
	}
	l.scanning.Lock()
	ask(1)
	if first := l.Catalog(t.Context()); l.Catalog(t.Context()) != first {
		t.Error("there is another Catalog each time")
	}
	if n := scans.Load(); n != 0 {
		t.Errorf("%d scans during one, want none", n)
	}
	l.scanning.Unlock()
	ask(1)
	if n := scans.Load(); n != 1 {
		t.Errorf("%d scans, want one", n)
	}
	for _, change := range []func(*attach.Set){
		func(s *attach.Set) { s.Detach("a", time.Now()) },
		func(s *attach.Set) { *s = attach.Set{} }, // by an editor
	} {
		must(t, store.Update(func(s *attach.Set) error {
			s.Attach("a", attach.Entry{Dir: filepath.Join(dir, "a"), Since: time.Now()})
			return nil
		}))
		ask(1)
		must(t, store.Update(func(s *attach.Set) error { change(s); return nil }))
		l.scanning.Lock()
		ask(0)
		l.scanning.Unlock()
		ask(0)
	}
}

// Nested packs share the bounds of the outermost.
func TestRoomOfPacksInPacks(t *testing.T) {
	tree := "-- x/a/SKILL.md --\nPACK a\n"
	for i := range 5 {
		tree += fmt.Sprintf("-- x/a/p%d/SKILL.md --\nPACK p%d\n", i, i)
		for j := range 10 {
			tree += fmt.Sprintf("-- x/a/p%d/d%d/x --\nx\n", i, j)
		}
	}
	dir := writeTree(t, tree)
	l, err := NewLibrary(t.Context(), Options{Roots: []Root{{Dir: dir}}, bounds: bounds{packDirs: 20}}, nil)
	must(t, err)
	dirs := 0
	for range l.Dirs() {
		dirs++
	}
	if dirs > 3+20 {
		t.Errorf("%d directories were looked at, want 20 below the outermost pack", dirs)
	}
}

// A caller that iterates over the directories may stop at any of them.
func TestDirsUntil(t *testing.T) {
	l := library(t, writeTree(t, someTree), memo.Index{})
	all := slices.Collect(l.Dirs())
	for n := range all {
		var some []string
		for dir := range l.Dirs() {
			if some = append(some, dir); len(some) > n {
				break
			}
		}
		if !slices.Equal(some, all[:n+1]) {
			t.Errorf("the first %d are %q, want %q", n+1, some, all[:n+1])
		}
	}
}
