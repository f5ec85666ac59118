package enabled_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/testdata"
)

func runnable(names ...string) []*tools.Tool {
	var all []*tools.Tool
	for _, n := range names {
		all = append(all, &tools.Tool{Name: n, Command: new(tools.Command)})
	}
	return all
}

func free(string) bool { return false }

// A tool keeps its listed name while it is disabled, and no two tools of a chat have
// the same.
func TestNamesStay(t *testing.T) {
	var e enabled.Tools
	if e.Any() || e.Knows("notes") {
		t.Error("a chat begins with tools")
	}
	declared := append(runnable("find"), &tools.Tool{Name: "idea", DeclaredOnly: "no command"})
	listed, changed := e.Enable("notes", declared, nil, free)
	if want := []string{"notes__find"}; !slices.Equal(listed, want) || !changed {
		t.Errorf("Enable = %q, %v, want %q and a change", listed, changed, want)
	}
	again, changed := e.Enable("notes", declared, map[string]string{"find": "notes__find"}, free)
	if !slices.Equal(again, listed) || changed {
		t.Errorf("Enable of what is in use = %q, %v, want the same and no change", again, changed)
	}
	other, _ := e.Enable("no/tes", runnable("find"), nil, func(folded string) bool { return folded == toolname.Fold("no__tes__find") })
	if len(other) != 1 || other[0] == "no__tes__find" || !e.Taken(toolname.Fold(other[0])) {
		t.Errorf("a taken name was given: %q", other)
	}
	if !e.Disable("notes") || e.Disable("notes") {
		t.Error("Disable does not say once that there were tools")
	}
	if ref, ok := e.Listed("notes__find"); !ok || ref.Pack != "notes" || ref.Tool != "find" {
		t.Errorf("Listed = %+v, %v, want the tool, though it is disabled", ref, ok)
	}
	if !e.Taken(toolname.Fold("notes__find")) || !e.Taken(toolname.Fold(toolname.List)) || e.Taken("else") {
		t.Error("Taken does not know which names are")
	}
}

// Of more tools than clients can handle, those that were enabled last are in use.
func TestNewestAreInUse(t *testing.T) {
	root := t.TempDir()
	declaration := func(names ...string) string {
		text := ""
		for _, n := range names {
			text += fmt.Sprintf(`, {"name": %q, "description": "d", "command": {"program": "true"}}`, n)
		}
		return `{"tools": [` + text[2:] + "]}\n"
	}
	testdata.Plant(t, root, "-- a/SKILL.md --\n---\nname: a\ndescription: A.\n---\n-- a/tools.json --\n"+declaration("one", "two", "three"))
	catalog, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}})
	if err != nil {
		t.Fatal(err)
	}
	r := enabled.NewResolver(enabled.Options{
		Offer: offer.New(offer.Options{Forbids: func(call.Kind, string) bool { return false }, Description: 100}),
		Tools: toolfiles.New(tools.Limits{}, ""), Most: 2,
	})
	var e enabled.Tools
	e.Enable("a", runnable("one", "two", "three"), nil, free)
	if got, want := r.Names(catalog, &e, "a"), []string{"a__three", "a__two"}; !slices.Equal(got, want) {
		t.Errorf("in use: %q, want %q", got, want)
	}
	if r.IsOn(catalog, &e, "a", "one") || !r.IsOn(catalog, &e, "a", "two") {
		t.Error("IsOn says otherwise than Names")
	}
	if err := r.RoomFor(catalog, &e, "a", []string{"two", "three"}); err != nil {
		t.Errorf("no room for what is in use: %v", err)
	}
	if err := r.RoomFor(catalog, &e, "a", []string{"one"}); err == nil {
		t.Error("there is room for a third tool, want at most two")
	}
	for name, want := range map[string]string{"a__two": "two", "two": "two", "mcp__packs-mcp__a__three": "three", "a__four": ""} {
		ref, err := enabled.One(name, r.Named(catalog, &e, name))
		if ref.Tool != want || (err == nil) != (want != "") {
			t.Errorf("%q means %+v, %v, want %q", name, ref, err, want)
		}
	}
}

func ExampleTools() {
	var e enabled.Tools
	listed, _ := e.Enable("acme/notes", runnable("find", "write"), nil, free)
	fmt.Println(listed)
	e.Disable("acme/notes")
	fmt.Println(e.Listed(listed[0]))
	// Output:
	// [notes__find notes__write]
	// {acme/notes find notes__find} true
}
