package offer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// ListsDiffer agrees with the lists themselves, for every pair of many Catalogs.
func TestListsDiffer(t *testing.T) {
	long := strings.Repeat("long ", 300)
	doc := func(dir, name, description string, more ...string) string {
		return "-- " + dir + "/SKILL.md --\n---\nname: " + name + "\ndescription: " + description + "\n" + strings.Join(more, "") + "---\n"
	}
	b, shut := doc("b", "b", "About b."), doc("shut", "shut", "Nobody opens it.")
	trees := map[string]string{
		"two packs":                       doc("a", "a", "About a.") + b,
		"another description":             doc("a", "a", "About a, and more.") + b,
		"both other descriptions":         doc("a", "a", "About a, and more.") + doc("b", "b", "About b, and more."),
		"a description that is cut":       doc("a", "a", long+"1") + b,
		"another end of it":               doc("a", "a", long+"2") + b,
		"more space in a description":     doc("a", "a", "About  a.") + b,
		"a tag":                           doc("a", "a", "About a.", "tags: [one]\n") + b,
		"a hint":                          doc("a", "a", "About a.", "argument-hint: what\n") + b,
		"another hint":                    doc("a", "a", "About a.", "argument-hint: when\n") + b,
		"not for models":                  doc("a", "a", "About a.", "disable-model-invocation: true\n") + b,
		"not for models, other words":     doc("a", "a", "About a, and more.", "disable-model-invocation: true\n") + b,
		"not for people, other words":     doc("a", "a", "About a, and more.", "user-invocable: false\n") + b,
		"for nobody":                      doc("a", "a", "About a.", "user-invocable: false\ndisable-model-invocation: true\n") + b,
		"for nobody, other words":         doc("a", "a", "About a, and more.", "user-invocable: false\ndisable-model-invocation: true\n") + b,
		"not for people":                  doc("a", "a", "About a.", "user-invocable: false\n") + b,
		"for people, it says":             doc("a", "a", "About a.", "user-invocable: true\n") + b,
		"not for people, with a hint":     doc("a", "a", "About a.", "user-invocable: false\nargument-hint: what\n") + b,
		"the folder has another name":     doc("x", "a", "About a.") + b,
		"the pack has another name":       doc("a", "c", "About a.") + b,
		"no skill, by its name":           doc("a", "A", "About a.") + b,
		"no skill, by its document":       strings.ReplaceAll(doc("a", "a", "About a."), "SKILL.md", "README.md") + b,
		"the document in another case":    strings.ReplaceAll(doc("a", "a", "About a."), "SKILL.md", "skill.md") + b,
		"no skill, by a problem":          doc("a", "a", "About: a.") + b,
		"a problem in the list":           doc("a", "a", "About a.", "tags: {}\n") + b,
		"one pack":                        b,
		"no pack":                         "",
		"another pack":                    doc("a", "a", "About a.") + doc("c", "c", "About b."),
		"not valid":                       strings.Replace(doc("a", "a", "About a."), "description: About a.\n", "", 1) + b,
		"a pack that may not be opened":   doc("a", "a", "About a.") + b + shut,
		"another description of that":     doc("a", "a", "About a.") + b + strings.Replace(shut, "it.", "it now.", 1),
		"a pack below":                    doc("a", "a", "About a.") + b + doc("b/c", "c", "Below."),
		"a name with a dot":               strings.ReplaceAll(doc("a.b", "n", "Same."), "name: n\n", "") + b,
		"the same to a prompt":            strings.ReplaceAll(doc("a-b", "n", "Same."), "name: n\n", "") + b,
		"two that are the same to prompt": doc("a_b", "a__b", "Same.") + doc("a/b", "b", "Same.") + b,
	}
	o := New(Options{
		Forbids:     func(kind call.Kind, id string) bool { return kind == call.KindOpen && id == "shut" },
		Description: 1024,
	})
	catalogs := map[string]*packs.Catalog{}
	root := t.TempDir()
	for name, tree := range trees {
		dir := root + "/" + strings.ReplaceAll(name, " ", "-")
		testdata.Plant(t, dir, "-- note.txt --\n"+tree)
		c, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: dir, AttachAll: true}}})
		if err != nil {
			t.Fatal(err)
		}
		catalogs[name] = c
	}
	catalogs["one of two, by hand"] = catalogs["two packs"].With(attach.Set{Detached: map[string]time.Time{"b": time.Unix(1, 0)}})
	found := map[bool]int{}
	for name, before := range catalogs {
		for other, now := range catalogs {
			wantPrompts := !slices.Equal(Print(o.AsPrompts(o.Prompts(before))), Print(o.AsPrompts(o.Prompts(now))))
			wantResources := !slices.Equal(Print(o.AsResources(o.Documents(before))), Print(o.AsResources(o.Documents(now))))
			prompts, resources := o.ListsDiffer(before, now)
			if prompts != wantPrompts || resources != wantResources {
				t.Errorf("from %q to %q: prompts %v, resources %v; want %v, %v", name, other, prompts, resources, wantPrompts, wantResources)
			}
			if name != other {
				found[prompts || resources]++
			}
		}
	}
	if found[true] < 100 || found[false] < 10 {
		t.Errorf("of the pairs, these differ: %v; that shows little", found)
	}
}
