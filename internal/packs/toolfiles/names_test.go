package toolfiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// The names of tools are read without compiling them, from the files that Load reads,
// and again only if those changed.
func TestToolNames(t *testing.T) {
	tree := "-- a/SKILL.md --\n---\nname: a\ndescription: d\n---\n" +
		"-- a/tools.json --\n{\"tools\": [" + jsonTool("one") + "," + jsonTool("two") + "]}\n" +
		"-- a/tools/far.tool.json --\n" + jsonTool("three") + "\n" +
		"-- a/bad.tool.json --\n{\n" +
		"-- b/SKILL.md --\n---\nname: b\ndescription: d\n---\n" +
		"-- b/tools.json --\n[{\"name\": \"of no command\"}, 5]\n" +
		"-- c/SKILL.md --\n---\nname: c\ndescription: d\n---\n" + mdTool
	root := writeTree(t, tree)
	if err := os.WriteFile(filepath.Join(root, "b", "large.tool.json"), []byte(`{"name": "large", "x": "`+strings.Repeat("x", maxNamed)+`"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	all := scan(t, packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true, Trust: packs.TrustUser}}}).All()
	f := New(tools.Limits{}, "")
	names := func() (got [][]string) {
		for _, p := range all {
			got = append(got, f.Names(p))
		}
		return got
	}
	if diff := cmp.Diff([][]string{nil, nil, nil}, names()); diff != "" {
		t.Errorf("before anybody looked (-want +got):\n%s", diff)
	}
	if f.Name(t.Context(), slices.Values(all), 0) {
		t.Error("Name of no bytes read something")
	}
	if !f.Name(t.Context(), slices.Values(all), 1<<20) {
		t.Error("Name read nothing")
	}
	want := [][]string{{"one", "two", "three"}, nil, {"from_md"}}
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if f.Name(t.Context(), slices.Values(all), 1<<20) {
		t.Error("Name read again what had not changed")
	}
	file := filepath.Join(root, "a", "tools.json")
	if err := os.WriteFile(file, []byte("["+jsonTool("four")+"]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	all = scan(t, packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true, Trust: packs.TrustUser}}}).All()
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Errorf("before anybody read them again (-want +got):\n%s", diff)
	}
	if !f.Name(t.Context(), slices.Values(all), 1<<20) {
		t.Error("Name did not see a change")
	}
	want[0] = []string{"four", "three"}
	if diff := cmp.Diff(want, names()); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	// The same for an entry document, however long ago Load compiled it.
	if _, _, err := f.Load(all[2]); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(root, "c", "SKILL.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "from_md", "other_name", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	all = scan(t, packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true, Trust: packs.TrustUser}}}).All()
	if got := f.Names(all[2]); !slices.Equal(got, []string{"from_md"}) {
		t.Errorf("names before anybody read them again = %q, want from_md", got)
	}
	f.Name(t.Context(), slices.Values(all), 1<<20)
	if got := f.Names(all[2]); !slices.Equal(got, []string{"other_name"}) {
		t.Errorf("names of the document = %q, want other_name", got)
	}
}

// However small the files are, one call only reads as many packs as take a moment.
func TestToolNamesOfSmallFiles(t *testing.T) {
	var tree strings.Builder
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		tree.WriteString("-- " + name + "/SKILL.md --\n---\nname: " + name + "\ndescription: d\n---\n-- " + name + "/tools.json --\n[" + jsonTool("one") + "]\n")
	}
	all := scan(t, packs.Options{Roots: []packs.Root{{Dir: writeTree(t, tree.String()), AttachAll: true, Trust: packs.TrustUser}}}).All()
	f := New(tools.Limits{}, "")
	for _, want := range []int{3, 5} {
		f.Name(t.Context(), slices.Values(all), 3*minNamed)
		named := 0
		for _, p := range all {
			if len(f.Names(p)) > 0 {
				named++
			}
		}
		if named != want {
			t.Errorf("the names of %d packs are read, want %d", named, want)
		}
	}
}
