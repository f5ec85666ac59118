package packs

import (
	"bytes"
	"encoding/binary"
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

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// decode reads an index of dir with the key "key".
func decode(index []byte, dir string) (*memo, error) {
	return decodeIndex(bytes.NewReader(index), int64(len(index)), "key", dir)
}

// An index in which any bit is another, or of which any part is missing, is none.
func TestDamagedIndex(t *testing.T) {
	dir := writeTree(t, someTree)
	m := library(t, dir, Index{}).memos[0]
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
	dir := writeTree(t, someTree)
	m := library(t, dir, Index{}).memos[0]
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
			if _, err := decode(encodeIndex(treeOf(n), "key"), dir); !errors.Is(err, errIndex) {
				t.Errorf("%s called %q: %v, want %v", what, name, err, errIndex)
			}
		}
		below := treeOf(&node{name: "r"}, &node{name: name})
		if _, err := decode(encodeIndex(below, "key"), dir); !errors.Is(err, errIndex) {
			t.Errorf("a directory called %q: %v, want %v", name, err, errIndex)
		}
	}
}

// treeOf is a memo of a directory, and of some that are in it, sorted by name.
func treeOf(top *node, below ...*node) *memo {
	var w writer
	at := w.begin(top)
	for _, n := range below {
		w.end(w.begin(n))
	}
	w.end(at)
	return &memo{tree: string(w.b), docs: w.docs}
}

// A node that ends before what it should have is none, though its length says so.
func TestNodeThatIsCutOff(t *testing.T) {
	whole := treeOf(&node{name: "top", entries: entriesOf(nil), tools: &listing{names: []string{"a.tool.json"}}, docs: []record{{
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

// A folder, or a file, that is not the user's alone is not used: nothing is read
// from it, and nothing is written.
func TestIndexOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes: this system has none")
	}
	needStamps(t, t.TempDir())
	for name, tc := range map[string]struct {
		do      func(t *testing.T, x Index)
		refused bool
	}{
		"a folder that others may write to": {func(t *testing.T, x Index) { must(t, os.Chmod(x.Dir, 0o777)) }, true},
		"a sticky folder":                   {func(t *testing.T, x Index) { must(t, os.Chmod(x.Dir, 0o777|os.ModeSticky)) }, true},
		"a folder of somebody else":         {func(t *testing.T, x Index) { chown(t, x.Dir) }, true},
		"a file of somebody else":           {func(t *testing.T, x Index) { chown(t, indexFile(t, x)) }, true},
		"a link in the file's place": {func(t *testing.T, x Index) {
			file := indexFile(t, x)
			must(t, os.Rename(file, file+".real"))
			must(t, os.Symlink(file+".real", file))
		}, true},
		"a folder in the file's place": {func(t *testing.T, x Index) {
			file := indexFile(t, x)
			must(t, os.Remove(file))
			must(t, os.Mkdir(file, 0o700))
		}, true},
		"a link to a folder that others may write to": {func(t *testing.T, x Index) {
			moveFolder(t, x)
			must(t, os.Chmod(x.Dir+".real", 0o777))
		}, true},
		"a link to a folder of the user's":   {func(t *testing.T, x Index) { moveFolder(t, x) }, false},
		"a folder that others may look into": {func(t *testing.T, x Index) { must(t, os.Chmod(x.Dir, 0o755)) }, false},
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

// chown gives a file to somebody else, as only root can.
func chown(t *testing.T, path string) {
	t.Helper()
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Skipf("chown: %v", err)
	}
}

// moveFolder puts a link in the place of the index's folder.
func moveFolder(t *testing.T, x Index) {
	t.Helper()
	must(t, os.Rename(x.Dir, x.Dir+".real"))
	must(t, os.Symlink(x.Dir+".real", x.Dir))
}

// An index that lies, with all stamps as they are, shows what it says of a pack
// and nothing else: what is opened, digested and run is what is there.
func TestPoisonedIndex(t *testing.T) {
	dir, x := writeTree(t, "-- a/SKILL.md --\nPACK a\n-- b/SKILL.md --\nPACK b\n"), indexIn(t)
	needStamps(t, dir)
	honest := library(t, dir, x)
	// What b is described as, for a, and tools from elsewhere.
	m := honest.memos[0]
	top := new(node)
	subs, _ := m.read(0, top)
	below := make(map[string]*node)
	for {
		name, at, ok := subs.next()
		if !ok {
			break
		}
		below[name] = new(node)
		if deeper, ok := m.read(at, below[name]); !ok || deeper.at < deeper.end {
			t.Fatalf("%q is not what this test is made for", name)
		}
	}
	a := below["a"]
	lie := below["b"].docs[0]
	lie.stamp = a.docs[0].stamp
	a.docs, a.tools = []record{lie}, &listing{names: []string{"../../b/tools/t.tool.json"}}
	poisoned := func() *memo {
		var all []*node
		for _, name := range slices.Sorted(maps.Keys(below)) {
			all = append(all, below[name])
		}
		lies := treeOf(top, all...)
		lies.dir = m.dir
		return lies
	}
	_, err := x.save(poisoned(), honest.opts.Limits.settings())
	must(t, err)
	if _, err := x.load(dir, honest.opts.Limits.settings()); !errors.Is(err, errIndex) {
		t.Errorf("an index with tools from elsewhere: %v, want %v", err, errIndex)
	}
	a.tools = nil
	_, err = x.save(poisoned(), honest.opts.Limits.settings())
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
	want, err := told.Body(0, 0)
	must(t, err)
	got, err := lied.Body(0, 0)
	must(t, err)
	if string(want.Data) != string(got.Data) || want.Path != got.Path {
		t.Errorf("Body = %q of %s, want %q", got.Data, got.Path, want.Data)
	}
}

// An index is as good after the clock was set back as before.
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
	// What is in the future, as it seems, is not remembered.
	if _, err := l.SaveIndex(t.Context()); err != nil {
		t.Error(err)
	}
	if again := library(t, dir, x); again.reads() == 0 {
		t.Error("what was written in the future, as it seemed, was remembered")
	}
}
