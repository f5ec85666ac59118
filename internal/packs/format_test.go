package packs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// decode reads an index of dir with the key "key".
func decode(index []byte, dir string) (*memo, error) {
	return decodeIndex(bytes.NewReader(index), int64(len(index)), "key", dir)
}

// An index in which any bit is another, or of which any part is missing, is none.
func TestDamagedIndex(t *testing.T) {
	dir := t.TempDir()
	m := remembered(t, dir)
	good := encodeIndex(m, "key")
	if _, err := decode(good, dir); err != nil {
		t.Fatalf("the index as it was written: %v", err)
	}
	for i := range good {
		if _, err := decode(good[:i], dir); !errors.Is(err, errIndex) {
			t.Fatalf("the first %d of %d bytes: %v, want %v", i, len(good), err, errIndex)
		}
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			good[i] ^= flip
			if _, err := decode(good, dir); !errors.Is(err, errIndex) {
				t.Fatalf("byte %d of %d, changed by %#x: %v, want %v", i, len(good), flip, err, errIndex)
			}
			good[i] ^= flip
		}
	}
	if _, err := decode(append(good, 'x'), dir); !errors.Is(err, errIndex) {
		t.Errorf("one byte more: %v, want %v", err, errIndex)
	}
}

// Even with the right checksum and lengths, a part of an index is none, and no
// other bytes make it name what is elsewhere.
func TestIndexWithARightChecksum(t *testing.T) {
	dir := t.TempDir()
	m := remembered(t, dir)
	good := encodeIndex(m, "key")
	// Whatever part ends early.
	begin := indexHead
	for part := range 3 {
		length := good[indexSum+4+4*part:][:4]
		size := int(binary.LittleEndian.Uint32(length))
		for less := 1; less <= size; less++ {
			cut := slices.Delete(slices.Clone(good), begin+size-less, begin+size)
			binary.LittleEndian.PutUint32(cut[indexSum+4+4*part:], uint32(size-less))
			sign(cut)
			if _, err := decode(cut, dir); !errors.Is(err, errIndex) {
				t.Fatalf("the first %d of %d bytes of part %d: %v, want %v", size-less, size, part, err, errIndex)
			}
		}
		begin += size
	}
	// Whatever byte is another, it is none or a tree that can be walked.
	for i := indexHead; i < len(good); i++ {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := slices.Clone(good)
			bad[i] ^= flip
			sign(bad)
			m, err := decode(bad, dir)
			if err != nil && !errors.Is(err, errIndex) {
				t.Fatalf("byte %d, changed by %#x: %v, want %v", i, flip, err, errIndex)
			}
			if err != nil {
				continue
			}
			for at := range m.dirs() {
				if rel, err := filepath.Rel(dir, at); err != nil || !filepath.IsLocal(rel) {
					t.Fatalf("byte %d, changed by %#x, makes it name %q", i, flip, at)
				}
			}
		}
	}
	for _, name := range []string{"..", ".", "", "/etc", "x/y", "x\x00"} {
		for what, n := range map[string]*node{
			"an entry":          {name: "r", entries: entries("f" + name + "/")},
			"a file with tools": {name: "r", tools: &listing{names: []string{name}}},
		} {
			if _, err := decode(encodeIndex(nodes(n), "key"), dir); !errors.Is(err, errIndex) {
				t.Errorf("%s called %q: %v, want %v", what, name, err, errIndex)
			}
		}
		below := nodes(&node{name: "r"}, &node{name: name})
		if _, err := decode(encodeIndex(below, "key"), dir); !errors.Is(err, errIndex) {
			t.Errorf("a directory called %q: %v, want %v", name, err, errIndex)
		}
	}
}

// nodes is a memo of a directory, and of some that are in it, sorted by name.
func nodes(top *node, below ...*node) *memo {
	var w writer
	at := w.begin(top)
	for _, n := range below {
		w.end(w.begin(n))
	}
	w.end(at)
	return w.memo("/root")
}

// remembered is a memo of dir with something of everything in it.
func remembered(t *testing.T, dir string) *memo {
	t.Helper()
	file := filepath.Join(dir, "a.md")
	write(t, file, "---\nname: a\n---\n")
	look := func(name string) packfs.Stamp {
		info, err := os.Lstat(name)
		must(t, err)
		return packfs.StampOf(info)
	}
	w := newWriter(new(memo))
	top := w.begin(&node{name: "root", stamp: look(dir), entries: "da/db/fa.md/llink/"})
	w.end(w.begin(&node{
		name: "a", stamp: look(dir), cut: true, state: 7, entries: "fSKILL.md/fa.tool.json/",
		docs: []record{
			{name: "SKILL.md", stamp: look(file), doc: (&frontmatter.Document{Name: "a", Description: "d", Tags: []string{"x", "y"}}).Summary(nil), tools: true},
			{name: "a.tool.json", problems: []diag.Diagnostic{{Code: "code", Severity: diag.Error, File: "a.tool.json", Message: "message", Hint: "hint", Line: 3, Column: 300}}},
		},
	}))
	w.end(w.begin(&node{name: "b", which: packfs.WhichInode(3, 1<<40), always: true, tools: &listing{stamp: look(dir), names: []string{"t.tool.json", "u.tool.json"}}}))
	w.end(top)
	link := w.size()
	w.end(w.begin(&node{name: "behind"}))
	w.link("behind/the/link", link)
	return w.memo(dir)
}

// A node that ends before what it should have is none, though its length says so.
func TestNodeThatIsCutOff(t *testing.T) {
	whole := nodes(&node{name: "top", entries: entriesOf(nil), tools: &listing{names: []string{"a.tool.json"}}, docs: []record{{
		name: "SKILL.md", doc: (&frontmatter.Document{Name: "a"}).Summary(nil), problems: []diag.Diagnostic{{Code: "code", Message: "message", Line: 1, Column: 300}},
	}}})
	if !whole.isWhole() {
		t.Fatal("a whole tree is none")
	}
	const size = len("\x03top") // where the node says how many bytes are behind
	fields := whole.tree[size+4:]
	for n := range len(fields) {
		tree := binary.LittleEndian.AppendUint32([]byte(whole.tree[:size]), uint32(n))
		if m := (&memo{tree: string(append(tree, fields[:n]...)), docs: whole.docs}); m.isWhole() {
			t.Errorf("a node of %d bytes of %d counts as whole", n, len(fields))
		}
	}
}

func TestIndexIsSwept(t *testing.T) {
	for _, folder := range []string{"plain", "[a-b]"} { // which is not a pattern
		t.Run(folder, func(t *testing.T) { testSweep(t, Index{Dir: filepath.Join(t.TempDir(), folder), Version: "1"}) })
	}
}

func testSweep(t *testing.T, x Index) {
	t.Helper()
	old, young := filepath.Join(x.Dir, "packs-0.index"), filepath.Join(x.Dir, "packs-1.index")
	write(t, old, "x")
	write(t, young, "x")
	write(t, filepath.Join(x.Dir, "other"), "x")
	long := time.Now().Add(-2 * indexLife)
	for _, f := range []string{old, filepath.Join(x.Dir, "other")} {
		must(t, os.Chtimes(f, long, long))
	}
	x.sweep(time.Now())
	left, err := os.ReadDir(x.Dir)
	must(t, err)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{"other", "packs-1.index"}; !slices.Equal(names, want) {
		t.Errorf("left are %q, want %q", names, want)
	}
}

// One pack with more folders, more files or more bytes than anybody has keeps no
// other from being found.
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
	// A change beside it does not make it be looked at again.
	write(t, filepath.Join(dir, "z", "SKILL.md"), "---\nname: z\ndescription: new\n---\n")
	changed, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "z")})
	if err != nil || !changed || l.reads() > 3 {
		t.Errorf("Refresh = %v, %v and read %d, want a few", changed, err, l.reads())
	}
}

// What lies below a directory that has another one's name now is looked at, though
// nothing happened in it.
func TestRefreshBelowWhatWasSwapped(t *testing.T) {
	dir := writeTree(t, "-- a/inner/one/SKILL.md --\nPACK one\n-- b/x --\n")
	l := library(t, dir, Index{})
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

// Of a root that nobody named there is nothing to say while it is not there; when
// it is there and cannot be read, there is. Its packs are found when it comes.
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

// What a link leads to can change where no event is about the pack.
func TestRefreshOfLinkedTools(t *testing.T) {
	dir := writeTree(t, "-- a/SKILL.md --\nPACK a\n-- a/shared/real.json --\n{}\n")
	needStamps(t, dir)
	if l := library(t, dir, Index{}); l.Concerns("real.json") || !l.Concerns("SKILL.md") || !l.Concerns("tools.json") || !l.Concerns("x.tool.json") {
		t.Error("without a link, any file concerns a pack, or one that declares something does not")
	}
	if err := os.Symlink(filepath.Join("shared", "real.json"), filepath.Join(dir, "a", "tools.json")); err != nil {
		t.Skipf("symlinks: %v", err)
	}
	l := library(t, dir, Index{})
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

// A link in a folder of packs that leads nowhere is followed when it does.
func TestRefreshOfLinksThatLeadNowhere(t *testing.T) {
	dir := writeTree(t, "-- x/note.txt --\nx\n-- a/x --\nx\n")
	if err := os.Symlink(filepath.Join("..", "x", "pack"), filepath.Join(dir, "a", "link")); err != nil {
		t.Skipf("symlinks: %v", err)
	}
	must(t, os.Symlink(filepath.Join("..", "x", "pack", "SKILL.md"), filepath.Join(dir, "a", "SKILL.md")))
	l := library(t, dir, Index{})
	write(t, filepath.Join(dir, "x", "pack", "SKILL.md"), "---\nname: late\ndescription: d\n---\n")
	_, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "x"), filepath.Join(dir, "x", "pack")})
	must(t, err)
	fresh := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true}}})
	if diff := cmp.Diff(full(fresh), full(l.Catalog(t.Context()))); diff != "" {
		t.Errorf("(-new scan +there):\n%s", diff)
	}
}

// A time of modification in the future, as some archives have it, is not a change.
func TestRefreshOfTheFuture(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	then := time.Now().Add(1000 * time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "a", "SKILL.md"), then, then))
	must(t, os.Chtimes(filepath.Join(dir, "a"), then, then))
	l := library(t, dir, Index{})
	if changed, err := l.Refresh(t.Context(), nil); err != nil || changed || l.reads() != 0 {
		t.Errorf("Refresh = %v, %v and read %d, want nothing", changed, err, l.reads())
	}
}

// What a person attached counts while the folders are looked at, and the many who
// ask for it afterwards have one scan.
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

// Packs inside of packs share the room of the outermost.
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

// Whoever asks for the directories may stop at any of them.
func TestDirsUntil(t *testing.T) {
	l := library(t, writeTree(t, someTree), Index{})
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

// No bytes make the index panic, or be taken for something else than was written.
func FuzzIndex(f *testing.F) {
	var w writer
	at := w.begin(&node{name: "r", entries: "da/fb.md/", docs: []record{{name: "b.md", problems: []diag.Diagnostic{{Code: "c"}}}}})
	w.end(w.begin(&node{name: "a", always: true, state: 7, tools: &listing{names: []string{"x"}}}))
	w.end(at)
	link := len(w.b)
	w.end(w.begin(&node{name: "x"}))
	m := &memo{dir: "/r", tree: string(w.b), docs: w.docs, links: map[string]int{"x": link}}
	good := encodeIndex(m, "key")
	if again, err := decodeIndex(bytes.NewReader(good), int64(len(good)), "key", "/r"); err != nil || !again.same(m) {
		f.Fatalf("what was written is read as %+v, %v", again, err)
	}
	f.Add(good[indexSum+4:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		data := append([]byte(indexMagic+"sum "), body...)
		sign(data)
		m, err := decodeIndex(bytes.NewReader(data), int64(len(data)), "key", "/r")
		if (m == nil) == (err == nil) {
			t.Fatalf("decodeIndex = %v, %v", m, err)
		}
		if err != nil && !errors.Is(err, errIndex) {
			t.Errorf("err = %v", err)
		}
		if m != nil {
			_ = slices.Collect(m.dirs())
		}
	})
}

// Of an index that is larger than any may be, nothing is read, whatever it says.
func TestIndexThatIsTooLarge(t *testing.T) {
	dir, x := t.TempDir(), Index{Dir: filepath.Join(t.TempDir(), "index"), Version: "1"}
	_, err := x.save(remembered(t, dir), "")
	must(t, err)
	file := x.file(dir).Path
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
	_, err = x.load(dir, "")
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errIndex) {
		t.Errorf("load = %v, want %v", err, errIndex)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it took %d bytes of memory to see that it is too large", took)
	}
}
