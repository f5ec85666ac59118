package toolfiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

const (
	packHead = "-- a/SKILL.md --\n---\nname: a\ndescription: d\n---\n"
	mdTool   = "### from_md\n\nSays it.\n\n#### Command\n\n```\necho {{x}}\n```\n\n#### Parameters\n\n| Name | Type | Required | Description |\n|---|---|---|---|\n| x | string | yes | what |\n"
)

func jsonTool(name string) string {
	return fmt.Sprintf(`{"name": %q, "description": "d", "command": {"program": "true", "args": []}}`, name)
}

// loaded returns the tools of a pack, and the codes of its problems.
func loaded(t *testing.T, f *Files, p *packs.Pack) (names, codes []string) {
	t.Helper()
	set, problems, err := f.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	if set != nil {
		for _, tool := range set.Tools {
			names = append(names, fmt.Sprintf("%s %s:%d", tool.Name, tool.File, tool.Line))
		}
	}
	for _, d := range problems {
		codes = append(codes, fmt.Sprintf("%s %s:%d", d.Code, d.File, d.Line))
	}
	return names, codes
}

func only(t *testing.T, tree string) *packs.Pack {
	t.Helper()
	all := scan(t, packs.Options{Roots: []packs.Root{{Dir: writeTree(t, tree), AttachAll: true, Trust: packs.TrustUser}}}).All()
	if len(all) != 1 {
		t.Fatalf("%d packs, want 1", len(all))
	}
	return all[0]
}

func TestToolFiles(t *testing.T) {
	tests := []struct {
		name, tree   string
		limits       tools.Limits
		names, codes []string
	}{
		{name: "none", tree: packHead},
		{name: "a heading alone is not a tool", tree: packHead + "### from_md\n\nProse.\n"},
		{
			name: "every format",
			tree: packHead + mdTool + "-- a/tools.json --\n[" + jsonTool("listed") + "]\n-- a/z.tool.json --\n" + jsonTool("beside") +
				"\n-- a/tools/b.tool.json --\n" + jsonTool("in_tools") + "\n-- a/tools/deeper/c.tool.json --\n" + jsonTool("too_deep") + "\n-- a/docs/d.tool.json --\n" + jsonTool("elsewhere") + "\n-- a/.tool.json --\nx\n",
			names: []string{"listed tools.json:1", "beside z.tool.json:1", "in_tools tools/b.tool.json:1", "from_md SKILL.md:5"},
		},
		{
			name:  "a broken file leaves the others",
			tree:  packHead + mdTool + "-- a/tools.json --\n{\n-- a/b.tool.json --\n" + jsonTool("b") + "\n-- a/c.tool.json --\n[]\n",
			names: []string{"b b.tool.json:1", "from_md SKILL.md:5"},
			codes: []string{"tool-pack-not-a-tool c.tool.json:1", "json-syntax tools.json:2"},
		},
		{
			name:  "one name in two files refuses both", // SH-01
			tree:  packHead + "-- a/tools.json --\n[" + jsonTool("open-it") + ", " + jsonTool("other") + "]\n-- a/b.tool.json --\n" + jsonTool("Open_It") + "\n-- a/c.tool.json --\n" + jsonTool("c") + "\n",
			names: []string{"c c.tool.json:1"},
			codes: []string{"tool-name-duplicate b.tool.json:1"},
		},
		{
			name:   "too many",
			tree:   packHead + "-- a/tools.json --\n[" + jsonTool("a") + ", " + jsonTool("b") + "]\n-- a/c.tool.json --\n" + jsonTool("c") + "\n-- a/d.tool.json --\n" + jsonTool("d") + "\n",
			limits: tools.Limits{Count: 3},
			names:  []string{"a tools.json:1", "b tools.json:1", "c c.tool.json:1"},
			codes:  []string{"tools-too-many d.tool.json:0"},
		},
		{
			name:   "far too many files",
			tree:   packHead + "-- a/a.tool.json --\n" + jsonTool("a") + "\n-- a/b.tool.json --\n" + jsonTool("b") + "\n-- a/c.tool.json --\n" + jsonTool("c") + "\n-- a/d.tool.json --\n" + jsonTool("d") + "\n",
			limits: tools.Limits{Count: 1},
			names:  []string{"a a.tool.json:1"},
			codes:  []string{"tools-too-many b.tool.json:0"},
		},
		{
			name:   "too large, one and together",
			tree:   packHead + "-- a/a.tool.json --\n" + strings.Repeat(" ", 200) + "\n-- a/b.tool.json --\n" + jsonTool("b") + "\n",
			limits: tools.Limits{Size: 150},
			names:  []string{"b b.tool.json:1"},
			codes:  []string{"tools-too-large a.tool.json:0"},
		},
		{
			name:  "links",
			tree:  packHead + "-- a/in.tool.json -> docs/x --\n-- a/docs/x --\n" + jsonTool("x") + "\n-- a/out.tool.json -> ../secret --\n-- secret --\n" + jsonTool("secret") + "\n-- a/gone.tool.json -> nowhere --\n",
			names: []string{"x in.tool.json:1"},
			codes: []string{"tools-unreadable out.tool.json:0"},
		},
		{
			name:  "tools is a link",
			tree:  packHead + "-- a/tools -> more --\n-- a/more/b.tool.json --\n" + jsonTool("b") + "\n",
			names: []string{"b tools/b.tool.json:1"},
		},
		{
			name: "tools is a link that leads out",
			tree: packHead + "-- a/tools -> ../other --\n-- other/b.tool.txt --\n" + jsonTool("b") + "\n",
		},
		{name: "tools is a file", tree: packHead + "-- a/tools --\nx\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			names, codes := loaded(t, New(tt.limits, ""), only(t, tt.tree))
			if diff := cmp.Diff(tt.names, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.codes, codes); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// Compiled tools are kept until the bytes of a file differ, whatever its times.
func TestToolFilesCache(t *testing.T) {
	p := only(t, packHead+mdTool+"-- a/b.tool.json --\n"+jsonTool("b")+"\n")
	f := New(tools.Limits{}, "")
	first, _, err := f.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := f.Load(p)
	if err != nil || again != first {
		t.Errorf("Load = %p, %v, want the same set, %p", again, err, first)
	}
	steps := []struct {
		file, content string
		want          []string
	}{
		{"b.tool.json", jsonTool("c"), []string{"c b.tool.json:1", "from_md SKILL.md:5"}},
		{"b.tool.json", "{", []string{"from_md SKILL.md:5"}},
		{"SKILL.md", "---\nname: a\ndescription: d\nnetwork: true\n---\n" + strings.ReplaceAll(mdTool, "from_md", "renamed"), []string{"renamed SKILL.md:6"}},
		{"SKILL.md", "---\nname: a\ndescription: d\n", nil}, // no longer an entry document
		{"SKILL.md", "---\nname: a\ndescription: d\n---\nProse.\n", nil},
		{"b.tool.json", jsonTool("b"), []string{"b b.tool.json:1"}},
	}
	for i, s := range steps {
		name := filepath.Join(p.Dir, s.file)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(s.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		names, _ := loaded(t, f, p)
		if diff := cmp.Diff(s.want, names); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		if got, want := f.HasTools(p), len(s.want) > 0; got != want {
			t.Errorf("step %d: HasTools = %v, want %v", i, got, want)
		}
	}
	if err := os.Remove(filepath.Join(p.Dir, "b.tool.json")); err != nil {
		t.Fatal(err)
	}
	if names, codes := loaded(t, f, p); len(names) > 0 || len(codes) > 0 {
		t.Errorf("Load = %v, %v, want nothing of a file that is gone", names, codes)
	}
	if err := os.RemoveAll(p.Dir); err != nil {
		t.Fatal(err)
	}
	if set, _, err := f.Load(p); err == nil || f.HasTools(p) {
		t.Errorf("Load = %v, nil, want an error for a pack that is gone", set)
	}
}

// A folder that is being replaced by another loses its files one by one while they
// are read: it must not count as a pack without tools. One whose tool file is gone
// must.
func TestToolFilesOfAFolderPutAside(t *testing.T) {
	p := only(t, packHead+"-- a/b.tool.json --\n"+jsonTool("b")+"\n")
	f := New(tools.Limits{}, "")
	dir, err := p.OpenDir()
	must(t, err)
	defer dir.Close()
	must(t, os.Remove(filepath.Join(p.Dir, "b.tool.json")))
	if set, problems, err := f.LoadFrom(dir, p); set != nil || len(problems) > 0 || err != nil {
		t.Errorf("load = %v, %v, %v of a pack whose file is gone, want nothing", set, problems, err)
	}
	must(t, os.Rename(p.Dir, p.Dir+"-aside"))
	must(t, os.Mkdir(p.Dir, 0o755))
	if set, _, err := f.LoadFrom(dir, p); !errors.Is(err, packfs.ErrReplaced) {
		t.Errorf("load = %v, %v of a folder that was put aside, want %v", set, err, packfs.ErrReplaced)
	}
}

// What was read once stays the same.
func TestToolsOnce(t *testing.T) {
	p := only(t, packHead+"-- a/b.tool.json --\n"+jsonTool("b")+"\n")
	f := New(tools.Limits{}, "")
	before := f.Once()
	if !before.HasTools(p) {
		t.Fatal("HasTools = false of a pack with a tool")
	}
	if err := os.Remove(filepath.Join(p.Dir, "b.tool.json")); err != nil {
		t.Fatal(err)
	}
	if set := before.Offered(p); set == nil || set.Lookup("b") == nil {
		t.Errorf("Offered = %v when the file is gone, want what was read before", set)
	}
	for name, remove := range map[string]string{"the file": "b.tool.json", "the pack": "."} {
		if err := os.RemoveAll(filepath.Join(p.Dir, remove)); err != nil {
			t.Fatal(err)
		}
		if now := f.Once(); now.HasTools(p) || now.Offered(p) != nil {
			t.Errorf("HasTools = true when %s was gone before it was asked", name)
		}
	}
}

func TestToolFilesOffered(t *testing.T) {
	inMode := func(name, mode string) string {
		return fmt.Sprintf(`{"name": %q, "description": "d", "modes": [%q], "command": {"program": "true", "args": []}}`, name, mode)
	}
	p := only(t, packHead+"-- a/a.tool.json --\n"+inMode("coding", "Coding")+"\n-- a/b.tool.json --\n"+inMode("global", "Global")+"\n")
	hidden := only(t, packHead+"-- a/a.tool.json --\n"+inMode("coding", "Coding")+"\n")
	for _, tt := range []struct {
		mode, want string
		hasHidden  bool
	}{{"", "global", false}, {"coding", "coding global", true}, {"Dictation", "global", false}} {
		f := New(tools.Limits{}, tt.mode)
		set, _, err := f.Offered(p)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range set.Tools {
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("mode %q: Offered = %s, want %s", tt.mode, got, tt.want)
		}
		if all, _, _ := f.Load(p); len(all.Tools) != 2 {
			t.Errorf("mode %q: Load gives %d tools, want 2", tt.mode, len(all.Tools))
		}
		if got := f.HasTools(hidden); got != tt.hasHidden {
			t.Errorf("mode %q: HasTools = %v, want %v", tt.mode, got, tt.hasHidden)
		}
	}
}

// The frontmatter says what the Markdown tools may do.
func TestToolFilesMarkdownDefaults(t *testing.T) {
	p := only(t, "-- a/SKILL.md --\n---\nname: a\ndescription: d\nread_only: true\nalways_ask: true\nreview: all\nnetwork: true\ntimeout: 7\nmodes: [Coding]\n---\n"+mdTool)
	set, _, err := New(tools.Limits{}, "").Load(p)
	if err != nil || set == nil {
		t.Fatalf("Load = %v, %v", set, err)
	}
	got := set.Tools[0]
	if pol := got.Policy; !pol.ReadOnly || !pol.AlwaysAsk || !pol.Review || pol.Timeout.Seconds() != 7 || strings.Join(got.Modes, ",") != "Coding" {
		t.Errorf("the tool has policy %+v and modes %v, want those of the frontmatter", pol, got.Modes)
	}
}

// Nothing is kept for long of packs that are gone, and nothing is compiled again of
// those that remain.
func TestToolFilesForget(t *testing.T) {
	dir := writeTree(t, packHead+"-- a/b.tool.json --\n"+jsonTool("b")+"\n")
	f := New(tools.Limits{}, "")
	catalog := func() *packs.Catalog {
		return scan(t, packs.Options{Roots: []packs.Root{{Dir: dir, AttachAll: true}}})
	}
	stays := catalog().All()[0]
	set, _, err := f.Load(stays)
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for i := range 3 * minForget {
		name := filepath.Join(dir, fmt.Sprint("gone", i))
		write(t, filepath.Join(name, "SKILL.md"), "---\nname: g\ndescription: d\n---\n")
		write(t, filepath.Join(name, "g.tool.json"), jsonTool("g"))
		now := catalog()
		f.Forget(now)
		for _, p := range now.All() {
			if _, _, err := f.Load(p); err != nil {
				t.Fatal(err)
			}
		}
		f.Name(t.Context(), slices.Values(now.All()), 1<<20)
		must(t, os.RemoveAll(name))
		most = max(most, len(f.known), len(f.names))
	}
	if most > minForget+3 {
		t.Errorf("the tools of %d packs were kept, of 2 that were there at a time", most)
	}
	if now, _, err := f.Load(stays); err != nil || now != set {
		t.Error("the tools of the pack that stays were forgotten")
	}
}
