package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// skilled exposes skills.
func skilled(s *setup) { s.server.Skills = true }

// specs/skillkit.md, FR-029 to FR-035: each attached pack is a tool with one text
// argument, which gives what open_docs gives, through the same gate.
func TestSkillTools(t *testing.T) {
	needShell(t)
	long := strings.Repeat("l", 50)
	const of = "---\nname: %s\ndescription: About %s.\n---\nDo $ARGUMENTS.\n"
	w := newWorld(t, triage, skilled)
	for _, id := range []string{"acme/deep", "a-b", "a_b", long} {
		name := id[strings.LastIndexByte(id, '/')+1:]
		w.put(id+"/SKILL.md", fmt.Sprintf(of, name, name), 0o644)
	}
	w.put("hidden/SKILL.md", "---\nname: hidden\ndescription: d\ndisable-model-invocation: true\n---\n", 0o644)
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.answer = decide("once")
	w.initialize()
	tools := objects(result(t, w.request("tools/list", nil))["tools"])[6:]
	names := make(map[string]map[string]any)
	folded := make(map[string]bool)
	for _, tool := range tools {
		name := tool["name"].(string)
		names[name] = tool
		if !toolName.MatchString(name) || folded[toolname.Fold(name)] {
			t.Errorf("the name %q is not portable, or is another's", name)
		}
		folded[toolname.Fold(name)] = true
	}
	if len(names) != 5 || names["triage"] == nil || names["acme__deep"] == nil || names["hidden"] != nil {
		t.Fatalf("the tools of packs are %v", slices.Collect(func(yield func(string) bool) {
			for n := range names {
				yield(n)
			}
		}))
	}
	if got := names["acme__deep"]; got["description"] != "About deep." || fmt.Sprint(got["inputSchema"].(map[string]any)["properties"].(map[string]any)["arguments"].(map[string]any)["type"]) != "string" {
		t.Errorf("acme__deep = %v, want its description and one text", got)
	}

	for _, args := range []map[string]any{{"arguments": "it"}, {}, nil, {"arguments": nil}} {
		asked := len(w.asked)
		out := w.ok("acme__deep", args)
		want := "Do .\n"
		if args["arguments"] == "it" {
			want = "Do it.\n"
		}
		doc := out["entry_doc"].(map[string]any)["content"].(string)
		if !strings.HasPrefix(doc, "Base directory for this skill: ") || !strings.HasSuffix(doc, want) || len(w.asked) != asked+1 || !says(w.lastQuestion(), "acme/deep") {
			t.Errorf("acme__deep %v = %q after %d questions, want %q after one about the pack", args, doc, len(w.asked)-asked, want)
		}
	}
	// Clients put prefixes of their own before the name.
	for _, name := range []string{"mcp__packs-mcp__acme__deep", "packs.acme__deep", "mcp__packs__triage"} {
		if out := w.ok(name, map[string]any{"arguments": "it"}); out["entry_doc"] == nil {
			t.Errorf("%s = %v, want the document", name, out)
		}
	}
	// Errors show the tool's own schema, which has one text, and the log names the
	// pack.
	for _, args := range []map[string]any{{"arguments": []string{"a"}}, {"else": "x"}, {"arguments": "it", "pack_id": "triage"}, {"offset": 3}} {
		e := w.fails("invalid_arguments", "acme__deep", args)
		if got, want := fmt.Sprint(e["schema"]), fmt.Sprint(names["acme__deep"]["inputSchema"]); got != want {
			t.Errorf("acme__deep %v has the schema %s in its error, want %s", args, got, want)
		}
		if all := w.entries(); all[len(all)-1].Pack != "acme/deep" || all[len(all)-1].Event != audit.EventRefusal {
			t.Errorf("acme__deep %v is recorded as %+v, want a refusal about acme/deep", args, all[len(all)-1])
		}
	}
	w.answer = decide("deny")
	w.fails("denied", "acme__deep", map[string]any{"arguments": "it"})

	// The tools of a pack never have the name of a skill.
	w.answer = decide("once")
	w.put("acme/tools.json", "{}", 0o644)
	w.put("acme/SKILL.md", "---\nname: acme\ndescription: d\n---\n", 0o644)
	w.put("acme/tools.json", `[{"name": "deep", "description": "d", "inputSchema": {"type": "object"}, "command": ["true"]}]`, 0o644)
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.enable("acme")
	listed := w.listed()
	if n := len(slices.Compact(slices.Sorted(slices.Values(listed)))); n != len(listed) {
		t.Errorf("two tools of %q have one name", listed)
	}

	// Off by default.
	w = newWorld(t, triage)
	w.initialize()
	if got := w.listed(); len(got) != 6 {
		t.Errorf("tools/list = %q, want the base tools alone", got)
	}
}

// A document that is longer than a page says how to get the rest, since the tool has
// only one text argument and no offset.
func TestSkillToolPages(t *testing.T) {
	w := newWorld(t, triage, skilled, limited(Limits{OpenPage: 20}))
	w.answer = decide("once")
	w.initialize()
	doc := w.ok("triage", map[string]any{"arguments": "it"})["entry_doc"].(map[string]any)
	if doc["truncated"] != true || !strings.Contains(fmt.Sprint(doc["note"]), `call capability_packs_open_docs with pack_id "triage"`) {
		t.Fatalf("triage = %v, want a page that says where the next is", doc)
	}
	next := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage", "arguments": "it", "offset": doc["next_offset"]})
	if next["entry_doc"].(map[string]any)["content"] == "" {
		t.Errorf("the next page is %v", next)
	}
}

// A client of 2026-07-28 carries the answer, and cannot itself tell that it called a
// skill.
func TestSkillToolCarriesAnswers(t *testing.T) {
	w := newWorld(t, triage, skilled)
	w.answer = decide("once")
	w.initialize()
	call := map[string]any{"name": "triage", "arguments": map[string]any{"arguments": "it"}}
	asked := result(t, w.modern("tools/call", call))
	call["requestState"] = asked["requestState"]
	call["inputResponses"] = map[string]any{"approval": decide("once")("", nil)}
	out, _ := result(t, w.modern("tools/call", call))["structuredContent"].(map[string]any)
	doc, _ := out["entry_doc"].(map[string]any)
	if content, _ := doc["content"].(string); !strings.Contains(content, "\n\nARGUMENTS: it\n\nTools of this pack, after capability_packs_enable_tools(") {
		t.Errorf("triage = %v, want the document with its arguments", out)
	}
}

// There are at most as many skill tools as tools that a chat may enable.
func TestSkillToolsAreBounded(t *testing.T) {
	tree := ""
	for i := range 10 {
		tree += fmt.Sprintf("-- p%d/SKILL.md --\n---\nname: p%d\ndescription: d\n---\n", i, i)
	}
	w := newWorld(t, tree, skilled, limited(Limits{EnabledTools: 4}))
	w.initialize()
	if got := w.listed()[6:]; !slices.Equal(got, []string{"p0", "p1", "p2", "p3"}) {
		t.Errorf("tools = %q, want the first four", got)
	}
}
