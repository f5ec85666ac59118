package packs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// later is by how much the clock of a test's scans is ahead: no program can set
// back the time of an inode's last change.
const later = 3 * time.Second

// library returns a library of dir whose scans take place a little later than
// they do, so that what was written just now counts as settled.
func library(t *testing.T, dir string, index Index) *Library {
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

// reads is how many directories and documents the last scan opened.
func (l *Library) reads() int {
	n := 0
	for _, m := range l.memos {
		n += m.reads
	}
	return n
}

// steps is how many steps the frontmatter that the last scan read took.
func (l *Library) steps() int {
	n := 0
	for _, m := range l.memos {
		n += m.steps
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

// A second look opens nothing of what did not change, and one file where one did.
func TestRefreshReadsWhatChanged(t *testing.T) {
	dir := writeTree(t, someTree)
	needStamps(t, dir)
	l := library(t, dir, Index{})
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
func TestRefreshOfWhatIsYoung(t *testing.T) {
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
func indexIn(t *testing.T) Index {
	return Index{Dir: filepath.Join(t.TempDir(), "index"), Version: "1"}
}

func save(t *testing.T, l *Library) {
	t.Helper()
	if _, err := l.SaveIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func indexFile(t *testing.T, x Index) string {
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

// full returns everything there is to see of a catalog.
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

// indexFileOf returns the file of a root in the index, whether it is there or not.
func indexFileOf(t *testing.T, x Index, root string) string {
	t.Helper()
	other := Index{Dir: filepath.Join(t.TempDir(), "index"), Version: x.Version}
	save(t, library(t, root, other))
	return filepath.Join(x.Dir, filepath.Base(indexFile(t, other)))
}

// indexKept is how long package memo keeps an index that nobody uses.
const indexKept = 30 * 24 * time.Hour
