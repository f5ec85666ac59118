package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Packs that nobody approved cannot make an answer large: a page is bounded however
// much they say about themselves, and however much is wrong with them.
func TestListBound(t *testing.T) {
	const maxPage = 384 << 10 // bytes of the answer, which has each text twice, escaped; with usual packs it is a tenth
	var tree strings.Builder
	// The text that takes the most room in JSON inside JSON, and in characters.
	worst := strings.Repeat(`<\"𝄞`, 2_000)
	var tools []string
	for range 180 {
		tools = append(tools, `{"name": 5, "descriptionn": "`+strings.Repeat("x", 200)+`"}`)
	}
	for i := range listPage {
		id := fmt.Sprintf("bad%02d", i)
		fmt.Fprintf(&tree, "-- %s/SKILL.md --\n---\nname: \"%s\"\ndescription: \"%s\"\ntags: [%s]\n---\n", id, worst[:12_000], worst, strings.Repeat(`"`+worst[:400]+`", `, 50))
		fmt.Fprintf(&tree, "-- %s/tools.json --\n{\"tools\": [%s]}\n", id, strings.Join(tools, ",\n"))
	}
	for i := range maxNotValid + 5 {
		fmt.Fprintf(&tree, "-- broken%02d/SKILL.md --\n---\nname: broken%02d\ntimeout: nothing\n", i, i)
		for j := range 30 {
			fmt.Fprintf(&tree, "name: \"%d%s\"\n", j, worst[:400])
		}
		tree.WriteString("---\n")
	}
	w := newWorld(t, tree.String())
	w.initialize()
	for _, query := range []string{"", "bad00", "broken", "x"} {
		reply := w.request("tools/call", map[string]any{"name": "capability_packs_list", "arguments": map[string]any{"query": query}})
		raw, err := json.Marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > maxPage {
			t.Errorf("the answer to %q has %d bytes, want %d at most", query, len(raw), maxPage)
		}
		page := result(t, reply)["structuredContent"].(map[string]any)
		if n := len(objects(page["packs"])); query == "" && n != listPage {
			t.Errorf("%d packs, want the %d there are", n, listPage)
		}
		wrong := objects(page["not_valid"])
		if want := map[string]int{"": maxNotValid, "broken": maxNotValid}[query]; len(wrong) != want {
			t.Errorf("%q: %d packs that are not valid, want %d: those that it names", query, len(wrong), want)
		}
		for _, p := range slices.Concat(objects(page["packs"]), wrong) {
			got := texts(p["problems"])
			if last := fmt.Sprintf(" more: packs-mcp show %s", p["pack_id"]); len(got) != maxListProblems+1 || !strings.HasSuffix(got[maxListProblems], last) {
				t.Errorf("%q: the problems are %q, want %d and how many more", query, got, maxListProblems)
			}
		}
	}
}

// What makes a pack unusable is said first.
func TestListWorstProblems(t *testing.T) {
	w := newWorld(t, "-- broken/SKILL.md --\n---\nname: 5\ntags: {a: b}\nmodes: {a: b}\ntimeout: never\nnetwork: perhaps\n---\n")
	w.initialize()
	wrong := objects(w.ok("capability_packs_list", nil)["not_valid"])
	if len(wrong) != 1 || !strings.Contains(texts(wrong[0]["problems"])[0], "description-missing") {
		t.Errorf("not_valid = %v, want that there is no description first", wrong)
	}
}
