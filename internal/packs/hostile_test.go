package packs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// One pack, whatever its content, keeps no other from being found, or from being seen
// to change: what is read of it has a bound that does not depend on the size of
// anything in the pack.
func TestHostilePacks(t *testing.T) {
	const (
		goodReads = 5 // the root, and the directories and documents of two packs
		many      = 10_000
	)
	file := func(t *testing.T, name, text string) { t.Helper(); write(t, name, text) }
	doc := "---\nname: m\ndescription: d\n---\n"
	sparse := func(t *testing.T, name string) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
		must(t, err)
		must(t, errors.Join(f.Truncate(1<<30), f.Close()))
	}
	link := func(t *testing.T, target, name string) {
		t.Helper()
		if err := os.Symlink(target, name); err != nil {
			t.Skipf("symlinks: %v", err)
		}
	}
	for name, tc := range map[string]struct {
		do    func(t *testing.T, dir string)
		want  []string // of the pack in m, and the problems of the root
		reads int      // the most reads that the pack may cost
	}{
		"a document of a gigabyte": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			sparse(t, dir+"/SKILL.md")
		}, []string{"m = m/SKILL.md invalid entry-too-large"}, 2},
		"a document of a gigabyte that is not called SKILL.md": {func(t *testing.T, dir string) {
			file(t, dir+"/README.md", doc)
			sparse(t, dir+"/README.md")
		}, nil, 2},
		"a document of a gigabyte without an end of its frontmatter": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", "---\nname: m\n")
			sparse(t, dir+"/SKILL.md")
		}, []string{"m = m/SKILL.md invalid entry-too-large frontmatter-too-large"}, 2},
		"a resource of a gigabyte": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			sparse(t, dir+"/data.bin")
		}, []string{"m = m/SKILL.md"}, 2},
		"a file with tools of a gigabyte": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			sparse(t, dir+"/tools.json")
			sparse(t, dir+"/x.tool.json")
		}, []string{"m = m/SKILL.md"}, 2},
		"very many files": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			for i := range many {
				must(t, os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o644))
			}
		}, []string{"m = m/SKILL.md"}, 2},
		"very many documents and files with tools": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			for i := range many / 10 {
				must(t, os.WriteFile(fmt.Sprintf("%s/%d.md", dir, i), nil, 0o644))
				must(t, os.WriteFile(fmt.Sprintf("%s/%d.tool.json", dir, i), nil, 0o644))
			}
		}, []string{"m = m/SKILL.md"}, 2},
		"very many names that are no text": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			for i := range 100 {
				if err := os.WriteFile(fmt.Sprintf("%s/\xff\xfe%d.tool.json", dir, i), nil, 0o644); err != nil {
					t.Skipf("names: %v", err)
				}
			}
		}, []string{"m = m/SKILL.md"}, 2},
		"a folder whose name is not text": {func(t *testing.T, dir string) {
			if err := os.MkdirAll(dir+"/\xff\xfe\n", 0o755); err != nil {
				t.Skipf("names: %v", err)
			}
			file(t, dir+"/\xff\xfe\n/SKILL.md", doc)
		}, []string{"m/m = m/\xff\xfe\n/SKILL.md"}, 3},
		"a name that is not text": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", "---\nname: \"\xff\xfe\"\ndescription: d\n---\n")
		}, []string{"m = m/SKILL.md name-not-valid yaml-recovered"}, 2},
		"very deep": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			must(t, os.MkdirAll(dir+strings.Repeat("/d", 300), 0o755))
		}, []string{"m = m/SKILL.md", "! " + CodeTooDeep}, 2 + memo.MaxDepth},
		"loops": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			file(t, dir+"/sub/x", "")
			link(t, ".", dir+"/here")
			link(t, "..", dir+"/above")
			link(t, "../..", dir+"/sub/far")
			link(t, "self", dir+"/self")
			link(t, "two", dir+"/one")
			link(t, "one", dir+"/two")
			link(t, "above/m/above/m/above/m", dir+"/round")
		}, []string{"m = m/SKILL.md"}, 4},
		"a link out": {func(t *testing.T, dir string) {
			file(t, dir+"/SKILL.md", doc)
			link(t, "/", dir+"/out")
		}, []string{"m = m/SKILL.md", "! " + CodeLinkOutside}, 3},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			dir := writeTree(t, "-- b/SKILL.md --\nPACK b\n-- m/x --\n-- z/SKILL.md --\nPACK z\n")
			tc.do(t, filepath.Join(dir, "m"))
			needStamps(t, dir)
			l := library(t, dir, memo.Index{})
			want := append(slices.Clone(tc.want), "b = b/SKILL.md", "z = z/SKILL.md")
			got := describe(l.Catalog(t.Context()), dir)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := l.reads(); n > goodReads+tc.reads {
				t.Errorf("%d directories and documents were read, want %d at most", n, goodReads+tc.reads)
			}
			write(t, filepath.Join(dir, "z", "SKILL.md"), "---\nname: z\ndescription: new\n---\n")
			changed, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "z")})
			if p, _ := l.Catalog(t.Context()).Lookup("z"); err != nil || !changed || p == nil || p.Description != "new" || l.reads() > 2+tc.reads {
				t.Errorf("after an edit of another: %v, %v, %+v, and %d were read", changed, err, p, l.reads())
			}
			must(t, l.Rescan(t.Context()))
			if n := l.reads(); n > tc.reads {
				t.Errorf("%d were read though nothing happened", n)
			}
			// Reading its tools and its digest does not affect others, and ends.
			files := NewToolFiles("")
			for _, p := range l.Catalog(t.Context()).All() {
				if _, _, err := files.Load(p); err != nil {
					t.Errorf("the tools of %s: %v", p.ID, err)
				}
			}
		})
	}
}

// Beyond a number of directories, or of entries in one, the rest is left out and
// reported; what comes before is found.
func TestBoundsOfTheWalk(t *testing.T) {
	for name, tc := range map[string]struct {
		bounds bounds
		want   []string
	}{
		"directories": {bounds{dirs: 20}, []string{"a = a/SKILL.md", "! " + CodeTooManyDirs}},
		"entries":     {bounds{entries: 20}, []string{"! " + CodeTooManyDirs}},
		"neither":     {bounds{}, []string{"a = a/SKILL.md", "z = z/SKILL.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t, "-- a/SKILL.md --\nPACK a\n-- z/SKILL.md --\nPACK z\n")
			for i := range 30 {
				must(t, os.Mkdir(filepath.Join(dir, "many"+fmt.Sprint(i)), 0o755))
			}
			c := scan(t, Options{Roots: []Root{{Dir: dir}}, bounds: tc.bounds})
			got := describe(c, dir)
			if tc.bounds.entries > 0 { // the file system decides which entries come first
				got = slices.DeleteFunc(got, func(line string) bool { return !strings.HasPrefix(line, "!") })
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Of very many links, each through others, the first ones of a pack and of a root are
// followed. The rest are reported, and do not affect another pack's links.
func TestBoundsOfLinks(t *testing.T) {
	tree := "-- .store/1/SKILL.md --\nPACK one\n-- a/SKILL.md --\nPACK a\n-- a/in/SKILL.md --\nPACK in\n-- z/SKILL.md --\nPACK z\n" +
		"-- y/l -> ../.store/99 --\n-- z/l -> ../.store/98 --\n-- x.tool.json -> .store/x.tool.json --\n-- .store/x.tool.json --\n{}\n"
	for i := 2; i < 100; i++ {
		tree += fmt.Sprintf("-- .store/%d/SKILL.md --\nPACK p%d\n", i, i)
	}
	for i := 10; i < 20; i++ {
		tree += fmt.Sprintf("-- a/l%d -> ../.chain/%d --\n-- .chain/%d -> ../.store/%d --\n-- a/in/m%d -> ../../.store/%d --\n", i, i, i, i, i, i+10)
	}
	dir := writeTree(t, tree)
	for name, tc := range map[string]struct {
		bounds bounds
		links  []string // links that lead to packs
		said   int
	}{
		"of a pack": {bounds{packLinks: 12}, []string{
			"a/in/m10", "a/in/m11", "a/in/m12", "a/in/m13", "a/in/m14", "a/in/m15", "a/in/m16", "a/in/m17", "a/in/m18", "a/in/m19", "a/l10", "a/l11", "y/l", "z/l",
		}, 1},
		"of a root":     {bounds{links: 5}, []string{"a/in/m10", "a/in/m11", "a/in/m12", "a/in/m13"}, 1}, // and the tool
		"of both":       {bounds{links: 5, packLinks: 2}, []string{"a/in/m10", "a/in/m11", "y/l"}, 2},
		"tools of both": {bounds{links: 1}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := scan(t, Options{Roots: []Root{{Dir: dir}}, bounds: tc.bounds})
			var links []string
			tool := false
			for _, p := range c.All() {
				if path.Base(p.path)[0] == 'l' || path.Base(p.path)[0] == 'm' {
					links = append(links, p.path)
				}
				tool = tool || p.Loose
			}
			slices.Sort(links)
			if diff := cmp.Diff(tc.links, links); diff != "" {
				t.Errorf("links that were followed (-want +got):\n%s", diff)
			}
			if !tool {
				t.Error("the linked tool is not there")
			}
			said := 0
			for _, d := range c.Problems() {
				if d.Code == CodeTooManyDirs {
					said++
				}
			}
			if said != tc.said {
				t.Errorf("said are %v, want %d of %s", c.Problems(), tc.said, CodeTooManyDirs)
			}
		})
	}
}

// A scan that is cancelled ends in the middle of a huge pack.
func TestScanOfAHugePackIsCancelled(t *testing.T) {
	dir := writeTree(t, "-- a/SKILL.md --\nPACK a\n")
	for i := range 200 {
		must(t, os.Mkdir(filepath.Join(dir, "a", fmt.Sprint(i)), 0o755))
	}
	ctx := &endsAfter{Context: t.Context(), left: 50}
	if _, err := Scan(ctx, Options{Roots: []Root{{Dir: dir}}}); !errors.Is(err, context.Canceled) || ctx.left < -5 {
		t.Errorf("Scan = %v, and went on for %d directories", err, -ctx.left)
	}
}

// endsAfter is a context that ends after it was asked a number of times.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}
