package packs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

func TestLoose(t *testing.T) {
	tests := []struct {
		name, tree string
		root       Root
		want       []string // id = path
	}{
		{name: "the root's own", tree: "-- a.tool.json --\n" + jsonTool("do_it") + "\n-- other.json --\n{}\n-- .tool.json --\n{}\n", want: []string{"do-it a.tool.json"}},
		{name: "tools, and below tools.d", tree: "-- tools/a.tool.json --\n" + jsonTool("a") + "\n-- tools/deep/x.tool.json --\n" + jsonTool("x") + "\n-- tools.d/p/q/b.tool.json --\n" + jsonTool("b") + "\n-- acme/tools/c.tool.json --\n" + jsonTool("c") + "\n-- acme/y.tool.json --\n" + jsonTool("y") + "\n",
			want: []string{"a tools/a.tool.json", "b tools.d/p/q/b.tool.json", "c acme/tools/c.tool.json"}},
		{name: "a root for tools", root: Root{Tools: true}, tree: "-- p/q/b.tool.json --\n" + jsonTool("b") + "\n-- .x/c.tool.json --\n" + jsonTool("c") + "\n", want: []string{"b p/q/b.tool.json"}},
		{name: "those of a pack are the pack's", tree: "-- SKILL.md --\nPACK top\n-- a.tool.json --\n" + jsonTool("a") + "\n-- tools/b.tool.json --\n" + jsonTool("b") + "\n", want: []string{"top ."}},
		{name: "beside packs", tree: "-- x/SKILL.md --\nPACK x\n-- a.tool.json --\n" + jsonTool("a") + "\n", want: []string{"a a.tool.json", "x x"}},
		{name: "one name twice", tree: "-- a.tool.json --\n" + jsonTool("run_it") + "\n-- run-it.tool.json --\n" + jsonTool("run-it") + "\n-- tools/z.tool.json --\n" + jsonTool("Run_It") + "\n",
			want: []string{"a a.tool.json id-collision", "run-it run-it.tool.json", "z tools/z.tool.json id-collision"}},
		{name: "a pack of that name", tree: "-- x/SKILL.md --\nPACK run-it\n-- y.tool.json --\n" + jsonTool("run_it") + "\n", want: []string{"run-it x", "y y.tool.json id-collision"}},
		{name: "wrong", tree: "-- a.tool.json --\n{\n-- b.tool.json --\n" + jsonTool("ok") + "\n-- c.tool.json --\n" + strings.Replace(jsonTool("c"), `"true"`, `"./c.sh"`, 1) + "\n",
			want: []string{"a a.tool.json invalid json-syntax", "c c.tool.json invalid loose-tool-folder", "ok b.tool.json"}},
		{name: "reserved", tree: "-- a.tool.json --\n" + jsonTool("workspace") + "\n", want: []string{"workspace a.tool.json invalid id-reserved"}},
		{name: "links", tree: "-- a.tool.json -> store/a.json --\n-- store/a.json --\n" + jsonTool("a") + "\n-- gone.tool.json -> nowhere --\n-- out.tool.json -> ../../../secret --\n",
			want: []string{"a store/a.json"}},
		{name: "a link to another of them", tree: "-- a.tool.json -> b.tool.json --\n-- b.tool.json --\n" + jsonTool("b") + "\n", want: []string{"b b.tool.json"}},
		{name: "nothing named", root: Root{Named: true}, tree: "-- a.tool.json --\n" + jsonTool("a") + "\n", want: []string{"a a.tool.json"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.root.Dir = writeTree(t, tt.tree)
			c := scan(t, Options{Roots: []Root{tt.root}})
			var got []string
			for _, p := range c.All() {
				rel, err := filepath.Rel(tt.root.Dir, p.Dir)
				if err != nil {
					t.Fatal(err)
				}
				line := p.ID + " " + filepath.ToSlash(rel)
				if !p.Valid {
					line += " invalid"
				}
				for _, d := range p.Problems {
					line += " " + d.Code
				}
				got = append(got, line)
				if p.Loose != strings.Contains(p.Entry, ".json") {
					t.Errorf("%s: Loose = %v with the entry %s", p.ID, p.Loose, p.Entry)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Scan (-want +got):\n%s", diff)
			}
		})
	}
}

const looseTree = "-- sum.tool.json --\n" + `{"name": "sum_up", "description": "Sums a page up.", "modes": ["Coding"],
 "parameters": {"url": {"type": "string", "required": true, "description": "The page"}},
 "command": {"program": "cat", "args": ["--", "{{url}}\n"]}}
-- other.tool.json --
{"name": "other", "description": "d", "command": {"program": "true", "args": []}}
-- notes.txt --
x
`

func TestLoosePack(t *testing.T) {
	dir := writeTree(t, looseTree)
	c := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true, Trust: TrustUser}}, Mode: "coding"})
	p, err := c.LookupAttached("SUM-UP")
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "sum_up" || p.Description != "Sums a page up." || p.Frontmatter.Name() != "sum_up" {
		t.Errorf("Lookup = %+v, want name and description of the tool", p)
	}
	if diff := cmp.Diff([]string{"sum.tool.json"}, p.ToolFiles); diff != "" {
		t.Errorf("ToolFiles (-want +got):\n%s", diff)
	}
	f := NewToolFiles("Coding")
	set, problems, err := f.Load(p)
	must(t, err)
	if set == nil || len(set.Tools) != 1 || set.Tools[0].Name != "sum_up" || set.Tools[0].File != "sum.tool.json" || set.Tools[0].Line != 1 || len(problems) > 0 || !f.HasTools(p) {
		t.Errorf("Load = %v, %v, want the tool", set, problems)
	}
	// Its folder shows only the file, and nothing beside it.
	d, err := p.OpenDir()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	entries, _, err := d.List(".")
	if err != nil || len(entries) != 1 || entries[0].Name != "sum.tool.json" {
		t.Errorf("List = %v, %v, want the file", entries, err)
	}
	for _, name := range []string{"other.tool.json", "notes.txt", "..", "./notes.txt"} {
		if _, err := d.Read(name, 0, 0, packfs.Limits{}); err == nil {
			t.Errorf("Read(%q) = nil, want an error", name)
		}
	}
	before, err := d.Digest(t.Context(), nil)
	if err != nil || len(before.Files) != 1 {
		t.Fatalf("Digest = %v, %v", before, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("y"), 0o644); err != nil {
		t.Fatal(err)
	}
	if now, err := d.Digest(t.Context(), nil); err != nil || now.Digest != before.Digest {
		t.Errorf("Digest = %v, %v, want the same", now, err)
	}
	if err := os.WriteFile(p.Dir, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if now, err := d.Digest(t.Context(), nil); err != nil || now.Digest == before.Digest {
		t.Errorf("Digest = %v, %v, want another", now, err)
	}
}

// An attachment is for one file: another tool in the same folder that later gets the
// id is not attached.
func TestLooseAttached(t *testing.T) {
	dir := writeTree(t, "-- new.tool.json --\n"+jsonTool("sum_up")+"\n")
	var set attach.Set
	set.Attach("sum-up", attach.Entry{Dir: filepath.Join(dir, "old.tool.json"), Trust: "user"})
	p := scan(t, Options{Roots: []Root{{Dir: dir}}, Attached: set}).All()[0]
	if p.Attached || p.Trust != TrustUntrusted || len(p.Problems) != 1 || p.Problems[0].Code != CodeAttachedOther {
		t.Errorf("Scan = %+v, want the pack not attached", p)
	}
	set.Attach("sum-up", attach.Entry{Dir: filepath.Join(dir, "new.tool.json")})
	if p := scan(t, Options{Roots: []Root{{Dir: dir}}, Attached: set}).All()[0]; !p.Attached {
		t.Errorf("Scan = %+v, want the pack attached", p)
	}
}

func TestRootInside(t *testing.T) {
	base := writeTree(t, "-- project/real/x/SKILL.md --\nPACK x\n-- project/in -> real --\n-- project/out -> ../other --\n-- other/y/SKILL.md --\nPACK y\n-- link -> project --\n")
	at := func(name string) string { return filepath.Join(base, filepath.FromSlash(name)) }
	for _, tt := range []struct {
		dir, inside string
		want        []string
	}{
		{"project/in", "project", []string{"x = project/real/x/SKILL.md"}},
		{"project/out", "project", []string{"! link-outside"}},
		{"project/out", "", []string{"y = other/y/SKILL.md"}},
		{"project/real", "link", []string{"x = project/real/x/SKILL.md"}},
		{"project/real", "gone", []string{"! link-outside"}},
	} {
		root := Root{Dir: at(tt.dir)}
		if tt.inside != "" {
			root.Inside = at(tt.inside)
		}
		if diff := cmp.Diff(tt.want, describe(scan(t, Options{Roots: []Root{root}}), base)); diff != "" {
			t.Errorf("Scan(%s in %q) (-want +got):\n%s", tt.dir, tt.inside, diff)
		}
	}
}
