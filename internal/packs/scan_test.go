package packs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// writeTree writes a txtar archive into a new directory, symlinks resolved. A file
// called "a -> b" is a symlink a to b. PACK as a file's only line stands for a
// frontmatter with the name that follows.
func writeTree(t *testing.T, archive string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := txtar.Parse([]byte(archive))
	for i, f := range a.Files {
		if pack, ok := strings.CutPrefix(string(f.Data), "PACK "); ok {
			a.Files[i].Data = fmt.Appendf(nil, "---\nname: %s\ndescription: d\n---\nbody\n", strings.TrimSpace(pack))
		}
	}
	testdata.Plant(t, dir, string(txtar.Format(a)))
	return dir
}

func scan(t *testing.T, opts Options) *Catalog {
	t.Helper()
	c, err := Scan(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// describe returns a line for each pack: id, directory and entry relative to base,
// and its state and problems.
func describe(c *Catalog, base string) []string {
	var lines []string
	for _, p := range c.All() {
		rel, err := filepath.Rel(base, p.Dir)
		if err != nil {
			rel = p.Dir
		}
		line := fmt.Sprintf("%s = %s/%s", p.ID, filepath.ToSlash(rel), p.Entry)
		if !p.Valid {
			line += " invalid"
		}
		if p.ShadowedBy != "" {
			line += " shadowed"
		}
		for _, d := range p.Problems {
			line += " " + d.Code
		}
		lines = append(lines, line)
	}
	for _, d := range c.Problems() {
		lines = append(lines, "! "+d.Code)
	}
	return lines
}

func TestDiscovery(t *testing.T) {
	tests := []struct {
		name, tree string
		root       Root
		want       []string
	}{
		{name: "nothing", tree: "-- x.txt --\n"},
		{name: "depth", tree: "-- 1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/SKILL.md --\nPACK sixteen\n-- 1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/SKILL.md --\nPACK seventeen\n",
			want: []string{"1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/sixteen = 1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/SKILL.md", "! root-too-deep"}},
		{name: "first document, deeper", tree: "-- a/b/x.md --\nPACK no\n-- a/c/y.md --\nPACK y\n-- a/c/tools.json --\n[]\n-- a/d/README.md --\nPACK d\n-- a/e/z.md --\nPACK z\n-- a/e/tools/t.tool.json --\n{}\n" +
			"-- a/f/m.md --\n---\nname: m\ndescription: d\n---\n### greet\n#### Command\n```bash\necho hi\n```\n",
			want: []string{"a/d = a/d/README.md", "a/m = a/f/m.md", "a/y = a/c/y.md", "a/z = a/e/z.md"}},
		{name: "beside a plugin manifest", tree: "-- p/.claude-plugin/plugin.json --\n{}\n-- p/agents/a.md --\nPACK a\n-- p/agents/deep/tools.json --\n[]\n-- p/agents/deep/b.md --\nPACK b\n-- p/Commands/README.md --\nPACK c\n" +
			"-- p/hooks/h.md --\nPACK h\n-- p/output-styles/o.md --\nPACK o\n-- p/skills/s/SKILL.md --\nPACK s\n-- q/agents/z.md --\nPACK z\n-- q/agents/tools.json --\n[]\n",
			want: []string{"p/skills/s = p/skills/s/SKILL.md", "q/z = q/agents/z.md"}},
		{name: "a root that is a plugin", tree: "-- .claude-plugin/plugin.json --\n{}\n-- agents/a.md --\nPACK a\n-- commands/c.md --\nPACK c\n-- other/o.md --\nPACK o\n-- hooks/SKILL.md --\nPACK hooks\n",
			want: []string{"hooks = hooks/SKILL.md", "o = other/o.md"}},
		{name: "skipped directories", tree: "-- .git/a/SKILL.md --\nPACK a\n-- node_modules/b/SKILL.md --\nPACK b\n-- .hidden/SKILL.md --\nPACK c\n-- d/SKILL.md --\nPACK d\n",
			want: []string{"d = d/SKILL.md"}},
		{name: "root is a pack", tree: "-- SKILL.md --\nPACK top\n-- more/SKILL.md --\nPACK more\n-- more/deep/x/SKILL.md --\nPACK x\n",
			want: []string{"more = more/SKILL.md", "more/deep/x = more/deep/x/SKILL.md", "top = ./SKILL.md"}},
		{name: "letter case", tree: "-- a/skill.md --\nPACK a\n-- b/Skill.MD --\nPACK b\n", want: []string{"a = a/skill.md", "b = b/Skill.MD"}},
		{name: "readme and others", tree: "-- a/README.md --\nPACK a\n-- a/b.md --\nPACK no\n-- b/z.md --\nPACK z\n-- b/c.md --\nPACK c\n-- c/README.md --\n# plain\n-- d/README.md --\n---\nname: d\n---\n-- e/README.md --\n# plain\n-- e/pack.md --\nPACK e\n",
			want: []string{"a = a/README.md", "c = b/c.md", "e = e/pack.md"}},
		{name: "broken skill is told", tree: "-- a/SKILL.md --\n# no frontmatter\n-- b/SKILL.md --\n---\nname: other\n---\n-- c/SKILL.md --\nPACK c\n-- a/README.md --\nPACK a\n",
			want: []string{"a = a/SKILL.md invalid frontmatter-missing", "c = c/SKILL.md", "other = b/SKILL.md invalid description-missing"}},
		{name: "configured entry", tree: "-- a/SKILL.md --\nPACK no\n-- a/docs/start.md --\nPACK a\n-- b/x.md --\n# plain\n-- c/SKILL.md --\nPACK c\n-- c/extra.md --\n",
			root: Root{Entry: map[string]string{"a": "docs/start.md", "b": "x.md"}, Docs: map[string][]string{"c": {"extra.md", "gone.md"}}},
			want: []string{"a = a/docs/start.md", "b = b/x.md invalid frontmatter-missing", "c = c/SKILL.md doc-missing"}},
		{name: "documents of a pack", tree: "-- a/SKILL.md --\nPACK a\n-- a/references/x.md --\nPACK x\n-- a/more/SKILL.md --\nPACK more\n-- a/link -> ../b --\n-- b/y.md --\nPACK y\n",
			want: []string{"a = a/SKILL.md", "a/more = a/more/SKILL.md", "y = b/y.md"}},
		{name: "configured entry outside", tree: "-- a/x --\n", root: Root{Entry: map[string]string{"a": "../../x"}}, want: []string{"a = a/../../x invalid entry-unreadable"}},
		{name: "links inside", tree: "-- real/a/SKILL.md --\nPACK a\n-- real/loop -> .. --\n-- real/self -> . --\n-- .store/b/SKILL.md --\nPACK b\n-- linked/b -> ../.store/b --\n-- linked/a -> ../real/a --\n-- linked/gone -> nowhere --\n-- linked/file -> ../real/a/SKILL.md --\n",
			want: []string{"linked/b = .store/b/SKILL.md", "real/a = real/a/SKILL.md"}},
		{name: "entry linked inside the pack", tree: "-- a/docs/x.md --\nPACK a\n-- a/SKILL.md -> docs/x.md --\n", want: []string{"a = a/SKILL.md"}},
		{name: "entry linked out of the pack", tree: "-- a/SKILL.md -> ../secret --\n-- secret --\nPACK a\n", want: []string{"a = a/SKILL.md invalid entry-unreadable"}},
		{name: "named, empty", tree: "-- x --\n", root: Root{Named: true}, want: []string{"! no-pack"}},
		{name: "named, plain readme", tree: "-- README.md --\n# x\n", root: Root{Named: true}, want: []string{"! no-pack"}},
		{name: "attach of nothing", tree: "-- a/SKILL.md --\nPACK a\n", root: Root{Attach: []string{"a", "b"}}, want: []string{"a = a/SKILL.md", "! attach-unknown"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.root.Dir = writeTree(t, tt.tree)
			found := scan(t, Options{Roots: []Root{tt.root}})
			if diff := cmp.Diff(tt.want, describe(found, tt.root.Dir)); diff != "" {
				t.Errorf("Scan (-want +got):\n%s", diff)
			}
			sameInMemory(t, tt.root, found)
		})
	}
}

func TestIdentity(t *testing.T) {
	tests := []struct {
		name, tree string
		want       []string
	}{
		{name: "name for the last segment", tree: "-- acme/billing/x/SKILL.md --\nPACK refunds\n", want: []string{"acme/billing/refunds = acme/billing/x/SKILL.md"}},
		{name: "slug", tree: "-- a/SKILL.md --\nPACK PDF Tools (v2)!\n-- b/SKILL.md --\nPACK Café\n-- my dir/SKILL.md --\nPACK 日本\n",
			want: []string{"cafe = b/SKILL.md name-not-valid", "my-dir = my dir/SKILL.md name-not-valid", "pdf-tools-v2 = a/SKILL.md name-not-valid"}},
		{name: "collision, owner keeps", tree: "-- a/SKILL.md --\nPACK x\n-- x/SKILL.md --\nPACK x\n-- z/SKILL.md --\nPACK x\n",
			want: []string{"a = a/SKILL.md id-collision", "x = x/SKILL.md", "z = z/SKILL.md id-collision"}},
		{name: "collision, first by path", tree: "-- b/SKILL.md --\nPACK x\n-- a/SKILL.md --\nPACK x\n", want: []string{"b = b/SKILL.md id-collision", "x = a/SKILL.md"}},
		{name: "collision, directory taken", tree: "-- a/SKILL.md --\nPACK x\n-- b/SKILL.md --\nPACK x\n-- c/SKILL.md --\nPACK b\n",
			want: []string{"b = c/SKILL.md", "b-2 = b/SKILL.md id-collision", "x = a/SKILL.md"}},
		{name: "collision, only case", tree: "-- Up/a/SKILL.md --\nPACK x\n-- up/b/SKILL.md --\nPACK x\n", want: []string{"up/b = up/b/SKILL.md id-collision", "up/x = Up/a/SKILL.md"}},
		{name: "folders are folded", tree: "-- d__e/f/SKILL.md --\nPACK f\n-- My Team/G.H_i/SKILL.md --\nPACK g\n-- ÄÖ__ß/k/SKILL.md --\nPACK k\n-- ___/l/SKILL.md --\nPACK l\n-- capability_packs_list/m/SKILL.md --\nPACK m\n" +
			"-- workspace/n.md --\nPACK n\n-- workspace.d/SKILL.md --\nPACK n\n-- x/workspace/SKILL.md --\n---\ndescription: d\n---\n-- CON__x/1/2/SKILL.md --\nPACK o\n",
			want: []string{
				"_/l = ___/l/SKILL.md",
				"capability_packs_list/m = capability_packs_list/m/SKILL.md",
				"con_x/1/o = CON__x/1/2/SKILL.md",
				"d_e/f = d__e/f/SKILL.md",
				"my-team/g = My Team/G.H_i/SKILL.md",
				"n = workspace/n.md",
				"workspace-d = workspace.d/SKILL.md id-collision",
				"x/workspace = x/workspace/SKILL.md invalid name-missing",
				"äö_ß/k = ÄÖ__ß/k/SKILL.md",
			}},
		{name: "reserved words from folders", tree: "-- a/SKILL.md --\nPACK x\n-- workspace/SKILL.md --\nPACK x\n-- x/SKILL.md --\nPACK x\n-- capability_packs_list/SKILL.md --\nPACK x\n",
			want: []string{
				"a = a/SKILL.md id-collision",
				"capability-packs-list-pack = capability_packs_list/SKILL.md id-collision",
				"workspace-pack = workspace/SKILL.md id-collision",
				"x = x/SKILL.md",
			}},
		{name: "reserved", tree: "-- a/SKILL.md --\nPACK workspace\n-- b/workspace/SKILL.md --\nPACK workspace\n-- c/SKILL.md --\nPACK mcp__x__y\n-- d__e/f/SKILL.md --\nPACK f\n-- g/SKILL.md --\nPACK capability_packs_list\n-- h/SKILL.md --\nPACK capability-packs-read-file\n-- i/SKILL.md --\nPACK capability-packs\n",
			want: []string{
				"b/workspace = b/workspace/SKILL.md",
				"capability-packs = i/SKILL.md",
				"capability-packs-list = g/SKILL.md invalid id-reserved name-not-valid",
				"capability-packs-read-file = h/SKILL.md invalid id-reserved",
				"d_e/f = d__e/f/SKILL.md",
				"mcp-x-y = c/SKILL.md invalid id-reserved name-not-valid",
				"workspace = a/SKILL.md invalid id-reserved",
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := writeTree(t, tt.tree)
			found := scan(t, Options{Roots: []Root{{Dir: dir}}})
			if diff := cmp.Diff(tt.want, describe(found, dir)); diff != "" {
				t.Errorf("Scan (-want +got):\n%s", diff)
			}
			sameInMemory(t, Root{Dir: dir}, found)
		})
	}
}

// A refusal says which file to change, and what in it.
func TestReservedSaysWhere(t *testing.T) {
	dir := writeTree(t, "-- a__b/c/SKILL.md --\n---\ndescription: d\nname: x__y\n---\n-- t.tool.json --\n"+
		`{"name": "workspace", "description": "d", "parameters": {"type": "object"}, "command": {"program": "true"}}`+"\n")
	got := map[string]diag.Diagnostic{}
	for _, p := range scan(t, Options{Roots: []Root{{Dir: dir}}}).All() {
		for _, d := range p.Problems {
			if d.Code == CodeIDReserved {
				got[p.Entry] = d
			}
		}
	}
	if d := got["SKILL.md"]; d.File != "SKILL.md" || d.Line != 3 || !strings.Contains(d.Message, `"x__y"`) || strings.Contains(d.Message, "a__b") || !strings.Contains(d.Hint, "name:") {
		t.Errorf("of a document: %+v, want the line of its name", d)
	}
	if d := got["t.tool.json"]; d.File != "t.tool.json" || !strings.Contains(d.Hint, "tool") {
		t.Errorf("of a tool: %+v, want its file, and the tool's name as what to change", d)
	}
}

// What a bound leaves out is reported once, with a path and a number.
func TestBoundsSayWhere(t *testing.T) {
	deep := strings.Repeat("d/", memo.MaxDepth)
	dir := writeTree(t, "-- a/"+deep+"x/SKILL.md --\nPACK x\n-- a/"+deep+"y/SKILL.md --\nPACK y\n-- b/"+deep+"z/SKILL.md --\nPACK z\n-- c/SKILL.md --\nPACK c\n")
	var got []diag.Diagnostic
	for _, d := range scan(t, Options{Roots: []Root{{Dir: dir}}}).Problems() {
		if d.Code == CodeTooDeep {
			got = append(got, d)
		}
	}
	want := filepath.Join(dir, filepath.FromSlash("a/"+strings.TrimSuffix(strings.Repeat("d/", memo.MaxDepth-1), "/")))
	if len(got) != 1 || got[0].Severity != diag.Warning || got[0].File != want || !strings.Contains(got[0].Message, "2 ") || got[0].Hint == "" {
		t.Errorf("problems = %v, want one with the first of 2 folders, %s", got, want)
	}
	got = scan(t, Options{Roots: []Root{{Dir: dir}}, bounds: bounds{dirs: 3}}).Problems()
	if len(got) != 1 || got[0].Code != CodeTooManyDirs || !strings.HasPrefix(got[0].File, filepath.Join(dir, "a")) {
		t.Errorf("problems = %v, want one with the folder at which the bound was reached", got)
	}
}

// Ids do not depend on the order in which packs are found.
func TestIdentityOrder(t *testing.T) {
	make := func(order []int) string {
		all := []*Pack{{path: "a", Dir: "/r/a", Name: "x"}, {path: "b", Dir: "/r/b", Name: "x"}, {path: "x", Dir: "/r/x", Name: "x"}, {path: "c", Dir: "/r/c", Name: "b"}, {path: "B", Dir: "/r/B", Name: "q"}}
		var found []*Pack
		for _, i := range order {
			p := all[i]
			p.Frontmatter = frontmatterNamed(p.Name)
			found = append(found, p)
		}
		assignIDs(found)
		var ids []string
		for _, p := range found {
			ids = append(ids, p.path+"="+p.ID)
		}
		return strings.Join(ids, " ")
	}
	want := make([]int{0, 1, 2, 3, 4})
	for _, order := range [][]int{{4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 4, 0, 3, 2}} {
		if got := make(order); got != want {
			t.Errorf("order %v: %s, want %s", order, got, want)
		}
	}
}

func TestRoots(t *testing.T) {
	base := writeTree(t, "-- one/a/SKILL.md --\nPACK a\n-- one/bad/SKILL.md --\n---\nname: b\n---\n-- two/a/SKILL.md --\nPACK a\n-- two/b/SKILL.md --\nPACK b\n-- two/out -> ../one --\n-- file --\n")
	at := func(name string) string { return filepath.Join(base, name) }
	roots := []Root{{Dir: at("one"), Source: "flag", AttachAll: true, Trust: TrustUser}, {Dir: at("two"), Source: "project"}, {Dir: at("gone")}, {Dir: at("file")}, {Dir: at("one/a"), AttachAll: true}}
	c := scan(t, Options{Roots: roots})
	want := []string{
		"a = one/a/SKILL.md", "a = two/a/SKILL.md shadowed id-shadowed",
		"b = two/b/SKILL.md", "b = one/bad/SKILL.md invalid shadowed id-shadowed description-missing", // an invalid pack hides nothing
		"! link-outside", "! root-missing", "! root-unreadable",
	}
	if diff := cmp.Diff(want, describe(c, base)); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
	p, err := c.Lookup("a")
	if err != nil || p.Dir != at("one/a") || p.Trust != TrustUser || p.Source != "flag" || !p.Attached {
		t.Errorf("Lookup(a) = %+v, %v", p, err)
	}
	if p, _ := c.Lookup("b"); p.Trust != TrustUntrusted || p.Attached {
		t.Errorf("Lookup(b) = %+v, want untrusted and not attached", p)
	}
	shadowed := c.All()[1].Problems[0].Message
	if !strings.Contains(shadowed, at("one/a")) || !strings.Contains(shadowed, at("two/a")) {
		t.Errorf("%q, want both paths", shadowed)
	}
}

func TestAttached(t *testing.T) {
	base := writeTree(t, "-- all/a/SKILL.md --\nPACK a\n-- all/b/SKILL.md --\nPACK b\n-- all/bad/SKILL.md --\n# x\n-- none/c/SKILL.md --\nPACK c\n-- none/d/SKILL.md --\nPACK d\n-- none/dev/SKILL.md --\n---\nname: dev\ndescription: d\nmodes: [Dev]\n---\n-- clone/e/SKILL.md --\nPACK e\n-- elsewhere/e/SKILL.md --\nPACK e\n")
	at := func(name string) string { return filepath.Join(base, name) }
	roots := []Root{{Dir: at("all"), AttachAll: true, Trust: TrustUser}, {Dir: at("clone")}, {Dir: at("none"), Trust: TrustUser, Attach: []string{"dev"}}, {Dir: at("elsewhere")}}
	var set attach.Set
	set.Attach("c", attach.Entry{Dir: at("none/c"), Trust: "untrusted"})
	set.Attach("e", attach.Entry{Dir: at("elsewhere/e"), Trust: "user"})
	tests := []struct {
		name string
		set  func(attach.Set) attach.Set
		mode string
		want string
	}{
		{"nothing stored", func(attach.Set) attach.Set { return attach.Set{} }, "", "a b"},
		{"stored", func(s attach.Set) attach.Set { return s }, "", "a b c"},
		{"mode", func(s attach.Set) attach.Set { return s }, "dev", "a b c dev"},
		{"detached", func(s attach.Set) attach.Set { s.Detach("b", since); s.Detach("dev", since); return s }, "Dev", "a c"},
	}
	for _, tt := range tests {
		c := scan(t, Options{Roots: roots, Mode: tt.mode, Attached: tt.set(set.Clone())})
		var ids []string
		for _, p := range c.Attached() {
			ids = append(ids, p.ID)
		}
		if got := strings.Join(ids, " "); got != tt.want {
			t.Errorf("%s: Attached() = %s, want %s", tt.name, got, tt.want)
		}
	}
	c := scan(t, Options{Roots: roots, Attached: set})
	if p, _ := c.Lookup("c"); p.Trust != TrustUntrusted {
		t.Errorf("trust of c = %q, want what the person said", p.Trust)
	}
	// The clone's pack now has the id, but gains nothing by it.
	p, err := c.Lookup("e")
	if err != nil || p.Dir != at("clone/e") || p.Attached || p.Trust != TrustUntrusted || len(p.Problems) != 1 || p.Problems[0].Code != CodeAttachedOther {
		t.Errorf("Lookup(e) = %+v, %v", p, err)
	}
}

func TestLookup(t *testing.T) {
	dir := writeTree(t, "-- acme/refunds/SKILL.md --\nPACK refunds\n-- other/Refunds2/SKILL.md --\nPACK refunds2\n-- x/lint/SKILL.md --\nPACK lint\n-- y/lint/SKILL.md --\nPACK lint\n-- lint/SKILL.md --\nPACK formatter\n-- z/workspace/SKILL.md --\nPACK workspace\n")
	c := scan(t, Options{Roots: []Root{{Dir: dir, Attach: []string{"acme/refunds"}}}})
	tests := []struct{ id, want, err string }{
		{"acme/refunds", "acme/refunds", ""}, {"ACME/Refunds", "acme/refunds", ""}, {"refunds", "acme/refunds", ""}, {"Refunds2", "other/refunds2", ""},
		{" formatter/", "formatter", ""},
		{"lint", "", `"lint" may be any of the packs ["x/lint" "y/lint"]`},
		{"refund", "", `no pack "refund"; near to it are ["acme/refunds" "other/refunds2"]`},
		{"formater", "", `no pack "formater"; near to it are ["formatter"]`},
		{"zzzzz", "", `no pack "zzzzz"`}, {"", "", `no pack ""`}, {"workspace", "", `no pack "workspace"; near to it are ["z/workspace"]`},
		{"acme", "", `no pack "acme"; near to it are ["acme/refunds"]`},
	}
	for _, tt := range tests {
		p, err := c.Lookup(tt.id)
		switch {
		case tt.err == "" && (err != nil || p.ID != tt.want):
			t.Errorf("Lookup(%q) = %v, %v, want %s", tt.id, p, err, tt.want)
		case tt.err != "" && (err == nil || err.Error() != tt.err || !errors.Is(err, ErrNotFound)):
			t.Errorf("Lookup(%q) = %v, want %s", tt.id, err, tt.err)
		}
	}
	if _, err := c.LookupAttached("lint"); err == nil || err.Error() != `no pack "lint"` {
		t.Errorf("LookupAttached(lint) = %v, want no word of what is not attached", err)
	}
	if p, err := c.LookupAttached("refunds"); err != nil || p.ID != "acme/refunds" {
		t.Errorf("LookupAttached(refunds) = %v, %v", p, err)
	}
}

func TestLimits(t *testing.T) {
	head := "---\nname: a\ndescription: " + strings.Repeat("é", 30) + "\nx: " + strings.Repeat("y", 6000) + "\n---\n"
	dir := writeTree(t, "-- a/SKILL.md --\n"+head+"-- a/tools.json --\n[]\n")
	tests := []struct {
		limits Limits
		want   string
	}{
		{Limits{}, "a = a/SKILL.md"},
		{Limits{Description: 30, EntryDoc: int64(len(head)), Frontmatter: len(head) - 8}, "a = a/SKILL.md"},
		{Limits{Description: 29}, "a = a/SKILL.md description-long"},
		{Limits{EntryDoc: int64(len(head)) - 1}, "a = a/SKILL.md invalid entry-too-large"},
		{Limits{Frontmatter: len(head) - 9}, "a = a/SKILL.md invalid frontmatter-too-large"},
		{Limits{Frontmatter: 100}, "a = a/SKILL.md invalid frontmatter-too-large"},
	}
	for _, tt := range tests {
		c := scan(t, Options{Roots: []Root{{Dir: dir}}, Limits: tt.limits})
		if diff := cmp.Diff([]string{tt.want}, describe(c, dir)); diff != "" {
			t.Errorf("Scan(%+v) (-want +got):\n%s", tt.limits, diff)
		}
		if diff := cmp.Diff([]string{"tools.json"}, c.All()[0].ToolFiles); diff != "" {
			t.Errorf("ToolFiles (-want +got):\n%s", diff)
		}
	}
}

func TestScanCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := Scan(ctx, Options{Roots: []Root{{Dir: t.TempDir()}}}); c != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Scan = %v, %v, want %v", c, err, context.Canceled)
	}
}

func TestNoPackHint(t *testing.T) {
	dir := writeTree(t, "-- README.md --\n# x\n")
	c := scan(t, Options{Roots: []Root{{Dir: dir, Named: true}}})
	p := c.Problems()
	if len(p) != 1 || p[0].Severity != diag.Error || !strings.Contains(p[0].Message, "README.md: the file has no frontmatter") {
		t.Errorf("Problems() = %v, want what README.md lacks", p)
	}
}

func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		pack := filepath.Join(dir, fmt.Sprintf("group%d", i%10), fmt.Sprintf("pack%d", i))
		if err := os.MkdirAll(pack, 0o755); err != nil {
			b.Fatal(err)
		}
		text := fmt.Sprintf("---\nname: pack%d\ndescription: %s\nlicense: MIT\ntags: [a, b]\n---\n%s", i, strings.Repeat("some words ", 30), strings.Repeat("text\n", 500))
		if err := os.WriteFile(filepath.Join(pack, "SKILL.md"), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c, err := Scan(b.Context(), Options{Roots: []Root{{Dir: dir}}})
		if err != nil || len(c.packs) != 1000 {
			b.Fatal(err)
		}
	}
}

var since = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)

func frontmatterNamed(name string) frontmatter.Summary {
	return (&frontmatter.Document{Name: name}).Summary(nil)
}

// Assigning ids takes no longer for each pack if many packs have names without any
// usable character.
func TestAssignIDsToMany(t *testing.T) {
	work := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			found := make([]*Pack, n)
			for i := range found {
				found[i] = &Pack{Name: "包", Dir: fmt.Sprintf("/r/包%d", i), path: fmt.Sprintf("包%d", i)}
			}
			assignIDs(found)
		})
	}
	if few, many := work(100), work(1600); many > 32*few {
		t.Errorf("%.0f allocations for 100 packs, %.0f for 1,600", few, many)
	}
}
