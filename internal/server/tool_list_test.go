package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/finder"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// pack returns the txtar tree of a pack without tools.
func pack(id, description string) string {
	return fmt.Sprintf("-- %s/SKILL.md --\n---\nname: %s\ndescription: %s\n---\nBody of %s.\n", id, id[strings.LastIndexByte(id, '/')+1:], description, id)
}

func ids(content map[string]any) []string {
	var out []string
	for _, p := range objects(content["packs"]) {
		out = append(out, p["pack_id"].(string))
	}
	return out
}

func TestList(t *testing.T) {
	w := newWorld(t, triage+pack("acme/billing", "Send invoices.")+pack("notes", "Keep notes about incidents.")+
		"-- broken/SKILL.md --\n---\nname: broken\n---\n"+
		"-- badtools/SKILL.md --\n---\nname: badtools\ndescription: Bad tools.\n---\n-- badtools/tools.json --\n{\"tools\": [\n {\"name\": 5}]}\n")
	w.answer = decide("once")
	w.initialize()
	all := w.ok("capability_packs_list", map[string]any{})
	if got, want := ids(all), []string{"acme/billing", "badtools", "notes", "triage"}; !slices.Equal(got, want) {
		t.Errorf("list = %q, want %q: the valid packs by id", got, want)
	}
	byID := make(map[string]map[string]any)
	for _, p := range objects(all["packs"]) {
		byID[p["pack_id"].(string)] = p
	}
	if p := byID["triage"]; p["has_tools_json"] != true || p["source"] != "flag" || !slices.Equal(texts(p["tags"]), []string{"ops"}) || p["enabled"] != nil {
		t.Errorf("list: triage = %v, want tools, the source, a tag, nothing enabled", p)
	}
	if p := byID["badtools"]; p["has_tools_json"] != false || len(texts(p["problems"])) == 0 || !strings.Contains(texts(p["problems"])[0], "tools.json:2") {
		t.Errorf("list: badtools = %v, want a problem with file and line", p)
	}
	w.enable("triage")
	for _, p := range objects(w.ok("capability_packs_list", map[string]any{"query": "triage"})["packs"]) {
		if got := texts(p["enabled"]); !slices.Equal(got, []string{"triage__greet"}) {
			t.Errorf("list after enable_tools: enabled = %q, want triage__greet", got)
		}
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"acme/billing", "badtools", "notes", "triage"}},
		{"  ", []string{"acme/billing", "badtools", "notes", "triage"}},
		{"INCIDENTS", []string{"triage", "notes"}}, // the shorter description
		{"incidents notes", []string{"notes", "triage"}},
		{"triage incidents", []string{"triage", "notes"}},
		{"incidnts", []string{"triage", "notes"}},
		{"invoi", []string{"acme/billing"}},
		{"greet", []string{"triage"}}, // a tool's name
		{"!", nil},
		{"broken", nil},
		{"ops", []string{"triage"}},
		{"billing", []string{"acme/billing"}},
		{"nothing like it", nil},
	} {
		if got := ids(w.ok("capability_packs_list", map[string]any{"query": c.query})); !slices.Equal(got, c.want) {
			t.Errorf("list %q = %q, want %q", c.query, got, c.want)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("%d questions were asked, want 1, of enable_tools: metadata never asks", len(w.asked))
	}
}

// The pages together are the whole list. A query has one page, with the best packs.
func TestListPages(t *testing.T) {
	var tree strings.Builder
	var want []string
	for i := range 2*listPage + 5 {
		id := fmt.Sprintf("p%03d", i)
		tree.WriteString(pack(id, "One of many."))
		want = append(want, id)
	}
	w := newWorld(t, tree.String()+pack("many", "The best."))
	w.initialize()
	var got []string
	args := map[string]any{}
	for pages := 1; ; pages++ {
		page := w.ok("capability_packs_list", args)
		got = append(got, ids(page)...)
		next, more := page["next_cursor"].(string)
		if !more {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
		args["cursor"] = next
	}
	if want := append([]string{"many"}, want...); !slices.Equal(got, want) {
		t.Errorf("all pages = %q, want %q", got, want)
	}
	best := w.ok("capability_packs_list", map[string]any{"query": "many"})
	if got, want := ids(best), append([]string{"many"}, want[:listPage-1]...); !slices.Equal(got, want) || best["next_cursor"] != nil {
		t.Errorf("list many = %q and the cursor %v, want %q and none", got, best["next_cursor"], want)
	}
	w.fails("invalid_arguments", "capability_packs_list", map[string]any{"query": "many", "cursor": args["cursor"]})
	w.fails("invalid_arguments", "capability_packs_list", map[string]any{"cursor": "???"})
	w.fails("invalid_arguments", "capability_packs_list", map[string]any{"cursor": "cDAwMQ"})
}

// A query finds what the chat has, and what exists now. Packs that a model may not
// know about take no places from others, even if they match better.
func TestListQuery(t *testing.T) {
	var tree strings.Builder
	for i := range 2 * listPage {
		tree.WriteString(pack(fmt.Sprintf("needle%02d", i), "Needle."))
	}
	tree.WriteString(pack("far", "Something about a needle."))
	tree.WriteString("-- person/SKILL.md --\n---\nname: person\ndescription: Needle, only for people.\ndisable-model-invocation: true\n---\n")
	tree.WriteString("-- flat/SKILL.md --\n---\nname: flat\ndescription: F.\n---\n-- flat/thread.tool.json --\n" +
		`{"name": "thread", "description": "T.", "parameters": {"type": "object"}, "command": ["true"]}` + "\n")
	w := newWorld(t, tree.String(), attachOnly("far", "flat"))
	w.initialize()
	query := func(words string, want ...string) {
		t.Helper()
		if got := ids(w.ok("capability_packs_list", map[string]any{"query": words})); !slices.Equal(got, want) {
			t.Errorf("list %q = %q, want %q", words, got, want)
		}
	}
	query("needle", "far")
	query("thread", "flat")
	chat := w.srv.chats.All()[0].ID()
	if err := w.srv.SetAttached(t.Context(), chat, "needle07", true); err != nil {
		t.Fatal(err)
	}
	query("needle", "needle07", "far")
	w.put("far/SKILL.md", "---\nname: far\ndescription: Something about hay.\n---\n", 0o644)
	w.refresh()
	query("needle", "needle07")
	query("hay", "far")
}

// Tools of packs that are not compiled for the query are found by name too, after
// some idle time, and again after a change and more idle time.
func TestListToolNames(t *testing.T) {
	var tree strings.Builder
	for i := range finder.MaxLoaded {
		tree.WriteString(pack(fmt.Sprintf("p%03d", i), "One of many."))
	}
	declare := func(name string) string {
		return fmt.Sprintf(`[{"name": %q, "description": "D.", "command": ["true"]}]`, name)
	}
	w := newWorld(t, tree.String()+pack("zfar", "Something.")+"-- zfar/tools.json --\n"+declare("open_ticket")+"\n"+
		pack("zmark", "Else.")+"## Tools\n### find_zebra\nD.\n#### Command\n```\ntrue\n```\n")
	w.initialize()
	query := func(words string, want ...string) {
		t.Helper()
		if got := ids(w.ok("capability_packs_list", map[string]any{"query": words})); !slices.Equal(got, want) {
			t.Errorf("list %q = %q, want %q", words, got, want)
		}
	}
	query("ticket")
	w.srv.Ready(t.Context())
	query("ticket", "zfar")
	query("zebra", "zmark")
	w.put("zfar/tools.json", declare("close_incidents"), 0o644)
	w.refresh()
	w.srv.Ready(t.Context())
	query("incident", "zfar")
	query("ticket")
}

// A model gets an answer to any query, and is told what to do if nothing is found.
func TestListStrangeQueries(t *testing.T) {
	w := newWorld(t, triage+pack("cafe", "Menus of a café, 翻訳."))
	w.initialize()
	for name, c := range map[string]struct {
		query string
		want  []string
	}{
		"nothing like it":      {"zzzz", nil},
		"no word":              {"?!", nil},
		"control characters":   {"\x00\x1b[31m\u202e\u200b", nil},
		"between words":        {"menus\x00\x1b\u202ecafé", []string{"cafe"}},
		"a long word":          {strings.Repeat("x", 100<<10), nil},
		"many words":           {"menus " + strings.Repeat("zzzz ", 20<<10), []string{"cafe"}},
		"many different words": {"menus " + strings.Join(slices.Repeat([]string{"q1w2 e3r4 t5z6"}, 7000), "x "), []string{"cafe"}},
		"another script":       {"翻訳", []string{"cafe"}},
		"an accent":            {"CAFÉ", []string{"cafe"}},
		"syntax":               {`"menus" AND (cafe*) ~2 ^5 OR 1=1; --`, []string{"cafe"}},
	} {
		got := w.ok("capability_packs_list", map[string]any{"query": c.query})
		if !slices.Equal(ids(got), c.want) {
			t.Errorf("%s: list = %q, want %q", name, ids(got), c.want)
		}
		if hint, _ := got["hint"].(string); (hint == "") != (len(c.want) > 0) {
			t.Errorf("%s: the hint is %q; want one exactly when nothing is found", name, hint)
		}
	}
}

// Packs that models may not use do not appear in anything that a model sees, and a
// call of one says why.
func TestNotOffered(t *testing.T) {
	w := newWorld(t, triage+
		pack("detached", "D.")+
		"-- person/SKILL.md --\n---\nname: person\ndescription: P.\ndisable-model-invocation: true\n---\n"+
		"-- other/SKILL.md --\n---\nname: other\ndescription: O.\nmodes: [Other]\n---\n"+
		"-- invalid/SKILL.md --\n---\nname: invalid\n---\n")
	w.answer = decide("once")
	init := w.initialize()["instructions"].(string)
	if got := ids(w.ok("capability_packs_list", nil)); !slices.Equal(got, []string{"detached", "triage"}) {
		t.Errorf("list = %q, want the two packs that are offered", got)
	}
	for _, id := range []string{"person", "other", "invalid"} {
		if strings.Contains(init, "pack_id: "+id) {
			t.Errorf("the instructions name %q", id)
		}
		e := w.fails("not_attached", "capability_packs_open_docs", map[string]any{"pack_id": id})
		if e["hint"] == nil {
			t.Errorf("open_docs %s: %v, want a hint", id, e)
		}
	}
	if e := w.fails("not_attached", "capability_packs_open_docs", map[string]any{"pack_id": "invalid"}); len(objects(e["problems"])) == 0 {
		t.Errorf("open_docs invalid: %v, want what is wrong", e)
	}
}

// A model is told about a pack whose frontmatter cannot be read if it already uses
// the pack's tools. Otherwise, until that edit, it may have been a pack that was
// hidden from models.
func TestNotValidAndUnreadable(t *testing.T) {
	w := newWorld(t, triage+
		"-- person/SKILL.md --\n---\nname: person\ndescription: P.\ndisable-model-invocation: true\n---\n"+
		"-- doubt/SKILL.md --\n---\nname: doubt\ndescription: D.\ndisable-model-invocation: yes please\n---\n"+
		"-- both/SKILL.md --\n---\nname: both\ndisable-model-invocation: 1\n---\n"+
		"-- loose.tool.json --\n{}\n"+
		"-- nameless/SKILL.md --\n---\ndescription: N.\n---\n"+
		"-- spoilt/SKILL.md --\n---\n: [\n---\n")
	w.answer = decide("chat")
	init := w.initialize()["instructions"].(string)
	notValid := func() []string {
		t.Helper()
		var all []string
		for _, p := range objects(w.ok("capability_packs_list", nil)["not_valid"]) {
			all = append(all, p["pack_id"].(string))
		}
		return all
	}
	if got, want := notValid(), []string{"loose", "nameless"}; !slices.Equal(got, want) {
		t.Errorf("not_valid = %q, want %q", got, want)
	}
	if got := ids(w.ok("capability_packs_list", nil)); !slices.Equal(got, []string{"triage"}) || strings.Contains(init, "doubt") {
		t.Errorf("list = %q, and the instructions are %q, want the one pack that is surely for models", got, init)
	}
	w.fails("not_attached", "capability_packs_open_docs", map[string]any{"pack_id": "doubt"})
	w.enable("triage")
	for _, id := range []string{"triage", "person"} {
		w.put(id+"/SKILL.md", "---\n: [\n---\n", 0o644)
	}
	w.refresh()
	if got, want := notValid(), []string{"loose", "nameless", "triage"}; !slices.Equal(got, want) {
		t.Errorf("after edits that spoil packs, not_valid = %q, want %q", got, want)
	}
}

// A pack that no person attached: the model learns what to ask for, but only if it
// knows the id.
func TestDetached(t *testing.T) {
	w := newWorld(t, triage, attachOnly())
	w.answer = decide("once")
	if got := w.initialize()["instructions"].(string); !strings.Contains(got, "(none; the user can attach packs with: packs-mcp attach ID)") {
		t.Errorf("instructions = %q, want that there are none", got)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"capability_packs_open_docs", nil},
		{"capability_packs_read_file", map[string]any{"path": "SKILL.md"}},
		{"capability_packs_enable_tools", nil},
		{"capability_packs_call_tool", map[string]any{"tool": "greet", "arguments": map[string]any{}}},
		{"capability_packs_exec_best_effort", map[string]any{"command": "true"}},
	} {
		args := map[string]any{"pack_id": "triage"}
		maps.Copy(args, c.args)
		e := w.fails("not_attached", c.tool, args)
		if want := "packs-mcp attach triage"; !strings.Contains(e["hint"].(string), want) {
			t.Errorf("%s: hint = %q, want %q in it", c.tool, e["hint"], want)
		}
	}
	e := w.fails("not_found", "capability_packs_open_docs", map[string]any{"pack_id": "triag"})
	if near := texts(e["near"]); len(near) != 0 {
		t.Errorf("near = %q, want none: a pack that is not attached is never suggested", near)
	}
	if len(w.asked) != 0 {
		t.Errorf("%d questions were asked, want none: what cannot be done is not worth a question", len(w.asked))
	}
}

// attachOnly attaches these ids, in place of the roots' "attach all".
func attachOnly(ids ...string) option {
	return func(s *setup) { s.packs.Roots[0].AttachAll, s.packs.Roots[0].Attach = false, ids }
}

// Other things that a document says about itself are in the list, escaped and cut.
func TestListMetadata(t *testing.T) {
	w := newWorld(t, `
-- full/SKILL.md --
---
name: full
description: d
version: "1.0"
license: "1.0"
compatibility: "`+strings.Repeat("x", 300)+`"
allowed-tools: "Read\x1b[2J"
---
-- none/SKILL.md --
---
name: none
description: d
---
`)
	w.initialize()
	listed := objects(w.ok("capability_packs_list", nil)["packs"])
	for key, want := range map[string]string{
		"version": "1.0", "license": "1.0", "compatibility": strings.Repeat("x", 199) + "…", "allowed_tools": `Read\x1b[2J`,
	} {
		if listed[0][key] != want || listed[1][key] != nil {
			t.Errorf("%s = %v and %v, want %q and none", key, listed[0][key], listed[1][key], want)
		}
	}
}

// Packs with the same description take one of a query's twenty entries, with all ids.
func TestListQueryFoldsCopies(t *testing.T) {
	var tree strings.Builder
	for i := range 25 {
		fmt.Fprintf(&tree, "-- copy%02d/refunds/SKILL.md --\n---\nname: refunds\ndescription: Gives customers their money back.\n---\n", i)
	}
	w := newWorld(t, tree.String()+pack("invoices", "Asks customers for money."))
	w.initialize()
	got := w.ok(toolname.List, map[string]any{"query": "money for customers"})
	listed := got["packs"].([]any)
	if len(listed) != 2 {
		t.Fatalf("%d packs, want 2: %v", len(listed), listed)
	}
	for _, l := range listed {
		l := l.(map[string]any)
		switch l["pack_id"] {
		case "copy00/refunds":
			if same := texts(l["same_as"]); len(same) != maxListCopies || same[0] != "copy01/refunds" {
				t.Errorf("same_as = %q, want the first %d of the others", same, maxListCopies)
			}
		case "invoices":
			if l["same_as"] != nil {
				t.Errorf("same_as of a pack without copies = %v", l["same_as"])
			}
		default:
			t.Errorf("listed %v", l)
		}
	}
}
