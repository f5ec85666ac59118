package packs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A document that changes, or is replaced, between taking its stamp and reading it is
// read again. One that never stays the same is not remembered.
func TestDocumentThatChangesWhileItIsRead(t *testing.T) {
	dir := writeTree(t, "-- SKILL.md --\n0")
	needStamps(t, dir)
	file := filepath.Join(dir, "SKILL.md")
	for name, tc := range map[string]struct {
		changes    int // after this many readings the file changes
		reads      int
		remembered bool
	}{
		"it stays":          {0, 1, true},
		"it changes once":   {1, 2, true},
		"it changes twice":  {2, 3, true},
		"it always changes": {100, 3, false},
	} {
		for how, change := range map[string]func(text string){
			"written in place": func(text string) { must(t, os.WriteFile(file, []byte(text), 0o644)) },
			"replaced": func(text string) {
				must(t, os.WriteFile(file+".new", []byte(text), 0o644))
				must(t, os.Rename(file+".new", file))
			},
		} {
			s := &scanner{files: packfs.System{}, stamps: memo.NewStamper(dir, time.Now().Add(later))}
			v := &visit{s: s, full: dir, now: memo.Node{Entries: memo.Entries("fSKILL.md/")}}
			reads, text := 0, ""
			got := v.read("SKILL.md", true, func(*packfs.Dir) (memo.Record, os.FileInfo) {
				reads++
				info, err := os.Lstat(file)
				must(t, err)
				data, err := os.ReadFile(file)
				must(t, err)
				text = string(data)
				if reads <= tc.changes {
					change(fmt.Sprintf("%s%d", text, reads))
				}
				return memo.Record{}, info
			})
			v.close()
			if reads != tc.reads || got.Stamp.IsZero() == tc.remembered {
				t.Errorf("%s, %s: it was read %d times and is remembered: %v, want %d and %v", name, how, reads, !got.Stamp.IsZero(), tc.reads, tc.remembered)
			}
			data, err := os.ReadFile(file)
			must(t, err)
			info, err := os.Lstat(file)
			must(t, err)
			if tc.remembered && (got.Stamp != packfs.StampOf(info) || text != string(data)) {
				t.Errorf("%s, %s: what was read is %q, which is remembered with another stamp than its own, or is not %q", name, how, text, data)
			}
		}
	}
}

// If a document is gone when it is to be read, its directory is listed again: what is
// there instead is found, and nothing is reported about what is gone.
func TestDocumentThatVanishes(t *testing.T) {
	for name, tc := range map[string]struct {
		tree string
		want []string
	}{
		"another is there":  {"-- a/README.md --\nPACK a\n", []string{"a = a/README.md"}},
		"nothing is there":  {"-- a/x --\n", nil},
		"what is below it":  {"-- a/deep/SKILL.md --\nPACK deep\n", []string{"a/deep = a/deep/SKILL.md"}},
		"the folder went":   {"-- b/x --\n", nil},
		"it was not listed": {"-- a/SKILL.md --\nPACK a\n", []string{"a = a/SKILL.md"}},
	} {
		dir := writeTree(t, tc.tree)
		// A listing with a document that nobody has read, as it is between listing
		// and reading.
		before := treeOf(dir, &memo.Node{Name: "root", Entries: memo.Entries("da/")}, &memo.Node{Name: "a", Entries: memo.Entries("fSKILL.md/")})
		c, _, err := rescan(t.Context(), Options{Roots: []Root{{Dir: dir}}}, []*memo.Memo{before}, map[string]bool{})
		must(t, err)
		if diff := cmp.Diff(tc.want, describe(c, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
