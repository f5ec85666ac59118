package server

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/rules"

	"os"

	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// toolPack returns the txtar tree of a pack whose tools take no arguments and run
// true.
func toolPack(id string, tools ...string) string {
	var list []string
	for _, name := range tools {
		list = append(list, fmt.Sprintf(`{"name": %q, "description": "Does %s.", "inputSchema": {"type": "object"}, "command": ["true"]}`, name, name))
	}
	return pack(id, "Has tools.") + "-- " + id + "/tools.json --\n[" + strings.Join(list, ",\n") + "]\n"
}

func names(content map[string]any, key string) []string {
	var out []string
	for _, t := range objects(content["tools"]) {
		out = append(out, t[key].(string))
	}
	return out
}

func TestEnable(t *testing.T) {
	w := newWorld(t, toolPack("many", "one", "two", "three")+`
-- rich/SKILL.md --
---
name: rich
description: A signature.
---
-- rich/tools.json --
{"tools": [{"name": "open_ticket", "title": "Open a ticket", "description": "Open it.",
 "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}, "severity": {"type": "integer", "default": 3}}, "required": ["title"]},
 "command": {"program": "echo", "args": ["{{title}}"]}}]}
`)
	w.answer = decide("once")
	w.initialize()

	part := w.enable("many", "two", "two")
	if got := names(part, "name"); !slices.Equal(got, []string{"many__two"}) || part["enabled"] != true {
		t.Errorf("enable two = %v, want only many__two", part)
	}
	if !says(w.asked[0], "Enable 1 tool of pack many?") {
		t.Errorf("the question is %q", w.asked[0])
	}
	if got := w.listed(); !slices.Contains(got, "many__two") || slices.Contains(got, "many__one") {
		t.Errorf("tools/list = %q, want many__two and not many__one", got)
	}
	all := w.enable("many")
	if got := names(all, "tool"); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("enable all = %q, want them in the order of the file", got)
	}
	if len(w.notes) != 2 {
		t.Errorf("%d notifications after two changes of the list, want 2", len(w.notes))
	}
	w.enable("many")
	if len(w.notes) != 2 {
		t.Errorf("a notification came although the list did not change")
	}

	rich := objects(w.enable("rich")["tools"])[0]
	if got, want := rich["signature"], "open_ticket(title: string, severity?: integer = 3)"; got != want {
		t.Errorf("signature = %q, want %q", got, want)
	}
	if rich["name"] != "rich__open_ticket" || rich["tool"] != "open_ticket" || rich["description"] != "Open it." {
		t.Errorf("the tool is %v", rich)
	}
}

func TestEnableRefuses(t *testing.T) {
	w := newWorld(t, pack("bare", "No tools.")+toolPack("many", "one", "two")+`
-- invalid/SKILL.md --
---
name: invalid
description: Invalid tools.
---
Body.
-- invalid/tools.json --
{"tools": [
  {"name": "good", "inputSchema": {"type": "object"}, "command": ["true"]},
  {"name": "bad", "inputSchema": {"type": "object"}, "command": {"program": "true", "args": ["{{nope}}"]}},
  {"name": "GOOD", "inputSchema": {"type": "object"}, "command": ["true"]}
]}
-- broken/SKILL.md --
---
name: broken
description: Not JSON.
---
-- broken/tools.json --
{"tools": [
  nope
-- declared/SKILL.md --
---
name: declared
description: Only declared.
---
-- declared/tools.json --
{"tools": [{"name": "idea", "description": "An idea.", "inputSchema": {"type": "object"}}]}
`)
	w.answer = decide("once")
	w.initialize()
	call := func(code string, args map[string]any) map[string]any {
		t.Helper()
		e := w.fails(code, "capability_packs_enable_tools", args)
		if e["hint"] == nil {
			t.Errorf("enable_tools %v: %v has no hint", args, e)
		}
		return e
	}
	call("not_found", map[string]any{"pack_id": "manny"})
	call("invalid_tools", map[string]any{"pack_id": "bare"})
	call("invalid_arguments", map[string]any{"pack_id": "many", "tools": "one"})
	call("invalid_arguments", map[string]any{"pack_id": "many", "tools": []any{1}})
	call("invalid_arguments", map[string]any{"pack_id": "many", "all": true})
	call("not_executable", map[string]any{"pack_id": "declared"})
	call("not_executable", map[string]any{"pack_id": "declared", "tools": []string{"idea"}})
	if e := call("invalid_arguments", map[string]any{"pack_id": "many", "tools": []string{"three"}}); !slices.Equal(texts(e["near"]), []string{"one", "two"}) {
		t.Errorf("near = %v, want the tools there are", e["near"])
	}
	var lines []string
	for _, p := range objects(call("invalid_tools", map[string]any{"pack_id": "invalid"})["problems"]) {
		lines = append(lines, fmt.Sprintf("%v:%v", p["file"], p["line"]))
		if p["message"] == nil || p["hint"] == nil || p["code"] == nil {
			t.Errorf("the problem %v lacks something", p)
		}
	}
	if !slices.Contains(lines, "tools.json:3") || !slices.Contains(lines, "tools.json:4") {
		t.Errorf("the problems are at %q, want lines 3 and 4 of tools.json", lines)
	}
	if p := objects(call("invalid_tools", map[string]any{"pack_id": "broken"})["problems"]); len(p) != 1 || p[0]["line"] != 2.0 {
		t.Errorf("the problems are %v, want line 2", p)
	}
	if len(w.asked) != 0 {
		t.Errorf("%d questions were asked, want none", len(w.asked))
	}
	// A pack without usable tools still has its documents.
	w.ok("capability_packs_open_docs", map[string]any{"pack_id": "invalid"})
}

// A tool that is only declared is named with the reason, next to those that can run.
func TestEnablePartlyDeclared(t *testing.T) {
	w := newWorld(t, pack("mixed", "Mixed.")+`-- mixed/tools.json --
{"tools": [{"name": "idea", "inputSchema": {"type": "object"}}, {"name": "real", "inputSchema": {"type": "object"}, "command": ["true"]}]}
`, limited(Limits{EnabledTools: 1}))
	w.answer = decide("once")
	w.initialize()
	got := w.enable("mixed")
	if !slices.Equal(names(got, "tool"), []string{"real"}) {
		t.Errorf("enabled = %v, want real alone", got)
	}
	if d := objects(got["not_executable"]); len(d) != 1 || d[0]["tool"] != "idea" || d[0]["reason"] == "" {
		t.Errorf("not_executable = %v, want idea and why", d)
	}
	if strings.Contains(w.asked[0], "idea") {
		t.Errorf("the question names a tool that cannot be enabled:\n%s", w.asked[0])
	}
	w.fails("not_executable", "capability_packs_call_tool", map[string]any{"pack_id": "mixed", "tool": "idea", "arguments": map[string]any{}})
	if names := w.listed(); slices.Contains(names, "mixed__idea") {
		t.Errorf("tools/list = %q, want no tool that cannot run", names)
	}
}

// A chat gets no more tools than clients can handle: the error gives the numbers, and
// says what to do.
func TestEnableLimit(t *testing.T) {
	w := newWorld(t, toolPack("a", "a1", "a2", "a3")+toolPack("b", "b1", "b2", "b3"), limited(Limits{EnabledTools: 4}))
	w.answer = decide("once")
	w.initialize()
	w.enable("a")
	e := w.fails("tool_list_too_large", "capability_packs_enable_tools", map[string]any{"pack_id": "b"})
	if got, want := e["message"], "3 tools are enabled and 3 more would pass the limit of 4"; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	for _, want := range []string{"at most 1", "a (3)"} {
		if !strings.Contains(e["hint"].(string), want) {
			t.Errorf("hint = %q, want %q in it", e["hint"], want)
		}
	}
	w.enable("b", "b2")
	w.enable("a") // nothing new
	w.fails("tool_list_too_large", "capability_packs_enable_tools", map[string]any{"pack_id": "b", "tools": []string{"b3"}})

	// What is detached makes room.
	if err := os.RemoveAll(filepath.Join(w.root, "a")); err != nil {
		t.Fatal(err)
	}
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.enable("b")
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)

// If a client could confuse two names, the later one gets a hash. A name never
// changes while a client uses it.
func TestNames(t *testing.T) {
	long := strings.Repeat("l", 30)
	w := newWorld(t, toolPack("a/lint", "run", "x")+toolPack("b/lint", "run", "Run_all")+toolPack("c/li-nt", "Run-all")+
		toolPack(long, "a_"+strings.Repeat("t", 40), "a_"+strings.Repeat("t", 41)))
	w.answer = decide("once")
	w.initialize()
	first := names(w.enable("a/lint"), "name")
	if !slices.Equal(first, []string{"lint__run", "lint__x"}) {
		t.Errorf("the first pack's names are %q", first)
	}
	second := names(w.enable("b/lint"), "name")
	if second[0] == "lint__run" || !strings.HasPrefix(second[0], "lint__run_") || second[1] != "lint__Run_all" {
		t.Errorf("the second pack's names are %q, want a hash behind the first", second)
	}
	all := slices.Concat(first, second, names(w.enable("c/li-nt"), "name"), names(w.enable(long), "name"))
	folded := make(map[string]string)
	for _, n := range all {
		if !toolName.MatchString(n) {
			t.Errorf("the name %q does not match %s", n, toolName)
		}
		if other := folded[toolname.Fold(n)]; other != "" {
			t.Errorf("the names %q and %q are the same to some clients", n, other)
		}
		folded[toolname.Fold(n)] = n
	}
	if got := w.listed(); len(got) != 6+len(all) {
		t.Errorf("tools/list has %d tools, want %d", len(got), 6+len(all))
	}
	// Both can be called, and each runs its own pack's tool.
	for name, want := range map[string]string{first[0]: "a/lint", second[0]: "b/lint"} {
		w.ok(name, map[string]any{})
		if q := w.asked[len(w.asked)-1]; !says(q, "of pack "+want+"?") {
			t.Errorf("%s asks %q, want the tool of %s", name, strings.SplitN(q, "\n", 2)[0], want)
		}
	}
	if again := names(w.enable("b/lint"), "name"); !slices.Equal(again, second) {
		t.Errorf("the names are %q now, and were %q", again, second)
	}
}

// Enabled tools survive an invalid file: while it is invalid there are none, once it
// is repaired they are the same as before, and the next call asks.
func TestEnableSurvives(t *testing.T) {
	needShell(t)
	w := newWorld(t, toolPack("many", "one"))
	w.answer = decide("chat")
	w.initialize()
	w.enable("many")
	w.ok("many__one", map[string]any{})
	asked := len(w.asked)
	good := `[{"name": "one", "description": "New words.", "inputSchema": {"type": "object"}, "command": ["true"]}]`
	w.put("many/tools.json", "{", 0o644)
	if got := w.listed(); len(got) != 6 {
		t.Errorf("tools/list = %q, want no pack's tools while the file is invalid", got)
	}
	w.fails("invalid_tools", "many__one", map[string]any{})
	w.put("many/tools.json", good, 0o644)
	if got := w.listed(); !slices.Contains(got, "many__one") {
		t.Errorf("tools/list = %q, want the tool back", got)
	}
	w.ok("many__one", map[string]any{})
	if len(w.asked) != asked+1 {
		t.Errorf("%d new questions after the change, want 1", len(w.asked)-asked)
	}
}

// Only tools that exist count as enabled: neither attaching and detaching, nor
// another tools.json, can exceed the limit or use it up.
func TestEnableLimitHolds(t *testing.T) {
	needShell(t)
	w := newWorld(t, toolPack("a", "a1", "a2", "a3")+toolPack("b", "b1", "b2", "b3"), limited(Limits{EnabledTools: 4}), func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"enable"}, Where: "config.yaml:1"}}
	})
	w.answer = decide("once")
	w.initialize()
	own := func() []string { return w.listed()[6:] }
	attach := func(name, pack string) {
		w.request("prompts/get", map[string]any{"name": name, "arguments": map[string]any{"pack_id": pack}})
	}

	// Detached, and attached again when there is no room: the tools that were enabled
	// last stay.
	w.enable("a")
	attach("detach", "a")
	w.enable("b")
	attach("attach", "a")
	if got := own(); !slices.Equal(got, []string{"a__a3", "b__b1", "b__b2", "b__b3"}) {
		t.Errorf("tools = %q, want the limit kept and those of b among them", got)
	}
	w.fails("not_enabled", "a__a1", map[string]any{})
	e := w.fails("tool_list_too_large", "capability_packs_enable_tools", map[string]any{"pack_id": "a"})
	if e["message"] != "4 tools are enabled and 2 more would pass the limit of 4" || strings.Contains(e["hint"].(string), "-") || !strings.Contains(e["hint"].(string), "b (3)") {
		t.Errorf("error = %v, want true numbers and what can be disabled", e)
	}

	// The model disables tools without a question, and enables them again under the
	// same names.
	asked := len(w.asked)
	out := w.ok("capability_packs_enable_tools", map[string]any{"pack_id": "b", "tools": []string{}})
	if out["enabled"] != false || len(out["tools"].([]any)) != 0 || len(w.asked) != asked {
		t.Errorf("disabling = %v and %d questions, want none enabled and no question", out, len(w.asked)-asked)
	}
	if got := own(); !slices.Equal(got, []string{"a__a1", "a__a2", "a__a3"}) {
		t.Errorf("tools = %q, want those of a alone", got)
	}
	w.fails("not_enabled", "b__b1", map[string]any{})
	w.enable("b", "b1")
	if got := own(); !slices.Equal(got, []string{"a__a1", "a__a2", "a__a3", "b__b1"}) {
		t.Errorf("tools = %q, want b1 as it was called", got)
	}

	// Tools that a file no longer declares take no room.
	w.put("a/tools.json", `[{"name": "a1", "inputSchema": {"type": "object"}, "command": ["true"]}]`, 0o644)
	w.enable("b")
	listed := objects(w.ok("capability_packs_list", nil)["packs"])
	if got := texts(listed[0]["enabled"]); !slices.Equal(got, []string{"a__a1"}) {
		t.Errorf("list has %q enabled of a, want what is there", got)
	}
	w.fails("not_found", "capability_packs_enable_tools", map[string]any{"pack_id": "nowhere", "tools": []string{}})
	w.ok("capability_packs_enable_tools", map[string]any{"pack_id": "a", "tools": []string{}})
	w.ok("capability_packs_enable_tools", map[string]any{"pack_id": "a", "tools": []string{}}) // already
}
