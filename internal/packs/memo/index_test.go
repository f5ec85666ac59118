package memo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// decode reads an index of dir with the key "key".
func decode(index []byte, dir string) (*Memo, error) {
	return decodeIndex(bytes.NewReader(index), int64(len(index)), "key", dir)
}

// An index with any changed bit or missing part is refused.
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

// Even with a valid checksum and valid lengths, a part of an index is refused, and no
// change makes it name paths outside.
func TestIndexWithARightChecksum(t *testing.T) {
	dir := t.TempDir()
	m := remembered(t, dir)
	good := encodeIndex(m, "key")
	// Any part may end early.
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
	// Whichever byte is changed, the index is refused, or its tree can be walked.
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
			for at := range m.Dirs() {
				if rel, err := filepath.Rel(dir, at); err != nil || !filepath.IsLocal(rel) {
					t.Fatalf("byte %d, changed by %#x, makes it name %q", i, flip, at)
				}
			}
		}
	}
	for _, name := range []string{"..", ".", "", "/etc", "x/y", "x\x00"} {
		for what, n := range map[string]*Node{
			"an entry":          {Name: "r", Entries: Entries("f" + name + "/")},
			"a file with tools": {Name: "r", Tools: &Listing{Names: []string{name}}},
		} {
			if _, err := decode(encodeIndex(nodes(n), "key"), dir); !errors.Is(err, errIndex) {
				t.Errorf("%s called %q: %v, want %v", what, name, err, errIndex)
			}
		}
		below := nodes(&Node{Name: "r"}, &Node{Name: name})
		if _, err := decode(encodeIndex(below, "key"), dir); !errors.Is(err, errIndex) {
			t.Errorf("a directory called %q: %v, want %v", name, err, errIndex)
		}
	}
}

// nodes returns a memo of a directory and some directories in it, sorted by name.
func nodes(top *Node, below ...*Node) *Memo {
	var w Writer
	at := w.Begin(top)
	for _, n := range below {
		w.End(w.Begin(n))
	}
	w.End(at)
	return w.Memo("/root")
}

// remembered returns a memo of dir that uses every kind of content.
func remembered(t *testing.T, dir string) *Memo {
	t.Helper()
	file := filepath.Join(dir, "a.md")
	write(t, file, "---\nname: a\n---\n")
	look := func(name string) packfs.Stamp {
		info, err := os.Lstat(name)
		must(t, err)
		return packfs.StampOf(info)
	}
	w := NewWriter(new(Memo))
	top := w.Begin(&Node{Name: "root", Stamp: look(dir), Entries: "da/db/fa.md/llink/"})
	w.End(w.Begin(&Node{
		Name: "a", Stamp: look(dir), Cut: true, State: 7, Entries: "fSKILL.md/fa.tool.json/",
		Docs: []Record{
			{Name: "SKILL.md", Stamp: look(file), Doc: (&frontmatter.Document{Name: "a", Description: "d", Tags: []string{"x", "y"}}).Summary(nil), Tools: true},
			{Name: "a.tool.json", Problems: []diag.Diagnostic{{Code: "code", Severity: diag.Error, File: "a.tool.json", Message: "message", Hint: "hint", Line: 3, Column: 300}}},
		},
	}))
	w.End(w.Begin(&Node{Name: "b", Which: packfs.WhichInode(3, 1<<40), Always: true, Tools: &Listing{Stamp: look(dir), Names: []string{"t.tool.json", "u.tool.json"}}}))
	w.End(top)
	link := w.Size()
	w.End(w.Begin(&Node{Name: "behind"}))
	w.Link("behind/the/link", link)
	return w.Memo(dir)
}

// A Node that ends too early is refused, even if its length is valid.
func TestTruncatedNode(t *testing.T) {
	whole := nodes(&Node{Name: "top", Entries: EntriesOf(nil), Tools: &Listing{Names: []string{"a.tool.json"}}, Docs: []Record{{
		Name: "SKILL.md", Doc: (&frontmatter.Document{Name: "a"}).Summary(nil), Problems: []diag.Diagnostic{{Code: "code", Message: "message", Line: 1, Column: 300}},
	}}})
	if !whole.isWhole() {
		t.Fatal("a whole tree is none")
	}
	const size = len("\x03top") // where the node's length is
	fields := whole.tree[size+4:]
	for n := range len(fields) {
		tree := binary.LittleEndian.AppendUint32([]byte(whole.tree[:size]), uint32(n))
		if m := (&Memo{tree: string(append(tree, fields[:n]...)), docs: whole.docs}); m.isWhole() {
			t.Errorf("a node of %d bytes of %d counts as whole", n, len(fields))
		}
	}
}

func TestIndexIsSwept(t *testing.T) {
	for _, folder := range []string{"plain", "[a-b]"} { // the second is not a pattern
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
	x.Sweep(time.Now())
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

// No bytes make the index panic, or be read as something that was not written.
func FuzzIndex(f *testing.F) {
	var w Writer
	at := w.Begin(&Node{Name: "r", Entries: "da/fb.md/", Docs: []Record{{Name: "b.md", Problems: []diag.Diagnostic{{Code: "c"}}}}})
	w.End(w.Begin(&Node{Name: "a", Always: true, State: 7, Tools: &Listing{Names: []string{"x"}}}))
	w.End(at)
	link := len(w.b)
	w.End(w.Begin(&Node{Name: "x"}))
	m := &Memo{Dir: "/r", tree: string(w.b), docs: w.docs, links: map[string]int{"x": link}}
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
			_ = slices.Collect(m.Dirs())
		}
	})
}

// Nothing is read of an index that is larger than the limit, whatever its content.
func TestIndexThatIsTooLarge(t *testing.T) {
	dir, x := t.TempDir(), Index{Dir: filepath.Join(t.TempDir(), "index"), Version: "1"}
	_, err := x.Save(remembered(t, dir), "")
	must(t, err)
	file := x.file(dir).Path
	head, err := os.ReadFile(file)
	must(t, err)
	// The excess is in the last part, according to its length. It is a hole in the
	// file.
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
	_, err = x.Load(dir, "")
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errIndex) {
		t.Errorf("load = %v, want %v", err, errIndex)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it took %d bytes of memory to see that it is too large", took)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
