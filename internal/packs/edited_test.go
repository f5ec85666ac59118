package packs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// Scanning only the pack that was edited finds what a scan of everything would, and
// remembers the same.
func TestEditedAlone(t *testing.T) {
	dir := t.TempDir()
	needStamps(t, dir)
	for i := range 30 {
		pack := filepath.Join(dir, fmt.Sprintf("group-%d", i%3), fmt.Sprintf("pack-%d", i))
		write(t, filepath.Join(pack, "SKILL.md"), skill(fmt.Sprintf("pack-%d", i), "First."))
		write(t, filepath.Join(pack, "docs", "more", "x.md"), "x")
		if i%2 == 0 {
			write(t, filepath.Join(pack, "tools.json"), `{"tools":[]}`)
		}
		if i%5 == 0 {
			write(t, filepath.Join(pack, "tools", "a.tool.json"), `{}`)
		}
	}
	write(t, filepath.Join(dir, "group-0", "pack-0", "inner", "SKILL.md"), skill("inner", "Inside."))
	write(t, filepath.Join(dir, "double", "one", "SKILL.md"), skill("same", "First."))
	write(t, filepath.Join(dir, "double", "two", "SKILL.md"), skill("same", "First."))
	at := func(i int, file ...string) string {
		return filepath.Join(append([]string{dir, fmt.Sprintf("group-%d", i%3), fmt.Sprintf("pack-%d", i)}, file...)...)
	}
	put := func(file, text string) { // as editors do
		write(t, file+".new", text)
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	lib := library(t, dir, memo.Index{})
	for _, test := range []struct {
		name  string
		alone bool
		dirs  []string
		edit  func()
	}{
		{"a longer description", true, []string{at(4)}, func() { write(t, at(4, "SKILL.md"), skill("pack-4", strings.Repeat("Longer. ", 300))) }},
		{"a shorter one", true, []string{at(4)}, func() { write(t, at(4, "SKILL.md"), skill("pack-4", "S.")) }},
		{"a replaced document", true, []string{at(7)}, func() { put(at(7, "SKILL.md"), skill("pack-7", "Replaced.")) }},
		{"a file with tools", true, []string{at(2)}, func() { write(t, at(2, "tools.json"), `{"tools":[{"name":"x"}]}`) }},
		{"a body", true, []string{at(3)}, func() { write(t, at(3, "SKILL.md"), skill("pack-3", "First.")+"more") }},
		{"two packs", true, []string{at(8), at(29)}, func() {
			write(t, at(8, "SKILL.md"), skill("pack-8", "Both."))
			write(t, at(29, "SKILL.md"), skill("pack-29", "Both of them."))
		}},
		{"a mode that is not offered", true, []string{at(10)}, func() {
			write(t, at(10, "SKILL.md"), "---\nname: pack-10\ndescription: Elsewhere.\nmodes: [other]\n---\n")
		}},
		{"nothing", true, []string{at(11)}, func() {}},
		{"a document that is named, too", true, []string{at(18), at(18, "SKILL.md")}, func() { write(t, at(18, "SKILL.md"), skill("pack-18", "Named.")) }},
		{"a directory beside it", false, []string{at(19), at(19, "new")}, func() { write(t, at(19, "new", "SKILL.md"), skill("new", "New.")) }},
		{"a file where a directory was", false, []string{at(20), at(20, "docs")}, func() {
			if err := os.RemoveAll(at(20, "docs")); err != nil {
				t.Fatal(err)
			}
			write(t, at(20, "docs"), "x")
		}},
		{"another name", false, []string{at(5)}, func() { write(t, at(5, "SKILL.md"), skill("renamed", "First.")) }},
		{"a name that another pack has", false, []string{at(6)}, func() { write(t, at(6, "SKILL.md"), skill("pack-9", "First.")) }},
		{"one of two with a name", false, []string{filepath.Join(dir, "double", "two")}, func() {
			write(t, filepath.Join(dir, "double", "two", "SKILL.md"), skill("same", "Second."))
		}},
		{"a document that is not valid", false, []string{at(12)}, func() { write(t, at(12, "SKILL.md"), "---\nname: [\n---\n") }},
		{"that is valid again", false, []string{at(12)}, func() { write(t, at(12, "SKILL.md"), skill("pack-12", "Again.")) }},
		{"one more file with tools", false, []string{at(13)}, func() { write(t, at(13, "tools.json"), `{"tools":[]}`) }},
		{"one less", false, []string{at(13)}, func() { remove(t, at(13, "tools.json")) }},
		{"a pack inside of a pack", false, []string{at(0, "inner")}, func() { write(t, at(0, "inner", "SKILL.md"), skill("inner", "Edited.")) }},
		{"the pack around it", true, []string{at(0)}, func() { write(t, at(0, "SKILL.md"), skill("pack-0", "Around.")) }},
		{"its folder of tools", false, []string{at(0, "tools")}, func() { write(t, at(0, "tools", "b.tool.json"), `{}`) }},
		{"a directory that is not a pack", false, []string{filepath.Join(dir, "group-1")}, func() { write(t, filepath.Join(dir, "group-1", "x.md"), "x") }},
		{"a document that is gone", false, []string{at(14)}, func() { remove(t, at(14, "SKILL.md")) }},
		{"a link in its place", false, []string{at(15)}, func() {
			remove(t, at(15, "SKILL.md"))
			if err := os.Symlink(at(16, "SKILL.md"), at(15, "SKILL.md")); err != nil {
				t.Fatal(err)
			}
		}},
		{"beside a link", false, []string{at(17)}, func() { write(t, at(17, "SKILL.md"), skill("pack-17", "Beside.")) }},
	} {
		test.edit()
		before := lib.Catalog(t.Context())
		if _, err := lib.Refresh(t.Context(), test.dirs); err != nil {
			t.Fatal(err)
		}
		now, found := lib.memos[0], lib.Catalog(t.Context())
		shared, edits := 0, 0
		for _, p := range before.packs {
			if slices.Contains(test.dirs, p.Dir) {
				edits++
			}
		}
		for _, p := range found.packs {
			if slices.Contains(before.packs, p) {
				shared++
			}
		}
		if found != before {
			if alone := shared == len(before.packs)-edits && edits > 0; alone != test.alone {
				t.Errorf("%s: %d of %d packs are the same, want alone %v", test.name, shared, len(before.packs), test.alone)
			}
		}
		whole, err := Scan(t.Context(), Options{Roots: lib.opts.Roots, clock: lib.opts.clock})
		if err != nil {
			t.Fatal(err)
		}
		if !found.same(whole) {
			t.Errorf("%s: the Catalog is not that of a look at everything", test.name)
		}
		kept := indexOf(t, now)
		if err := lib.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := indexOf(t, lib.memos[0]); again != kept {
			t.Errorf("%s: a look at everything remembers something else", test.name)
		}
	}
}

// A directory that was replaced by another is not scanned alone: everything below it
// may be new.
func TestReplacedIsNotAlone(t *testing.T) {
	dir := t.TempDir()
	needStamps(t, dir)
	write(t, filepath.Join(dir, "a", "SKILL.md"), skill("a", "First."))
	write(t, filepath.Join(dir, "b", "SKILL.md"), skill("b", "First."))
	lib := library(t, dir, memo.Index{})
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a", "SKILL.md"), skill("a", "Second."))
	if _, _, ok := lib.rescanEdited(t.Context(), lib.opts, map[string]bool{filepath.Join(dir, "a"): true}); ok {
		t.Error("a directory that is another one was looked at alone")
	}
}

func skill(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\nBody.\n"
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// indexOf returns the index of what is remembered. It fails if that is not a complete
// tree.
func indexOf(t *testing.T, m *memo.Memo) string {
	t.Helper()
	x := indexIn(t)
	if _, err := x.Save(m, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Load(m.Dir, ""); err != nil {
		t.Errorf("what is remembered is no whole tree: %v", err)
	}
	data, err := os.ReadFile(indexFile(t, x))
	must(t, err)
	return string(data)
}
