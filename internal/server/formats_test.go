package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

const threeFormats = `
-- mixed/SKILL.md --
---
name: mixed
description: A pack with tools in every format.
---

### from_md

Say a word.

#### Command

` + "```" + `
echo md {{word}}
` + "```" + `

#### Parameters

| Name | Type | Required | Description |
|---|---|---|---|
| word | string | yes | what to say |
-- mixed/tools.json --
[{"name": "from_list", "description": "d", "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}}, "command": {"program": "echo", "args": ["list", "{{word}}"]}}]
-- mixed/tools/from_pack.tool.json --
{"name": "from_pack", "description": "d", "parameters": {"word": {"type": "string", "required": true}}, "command": {"program": "echo", "args": ["pack", "{{word}}"]}}
-- mixed/tools/broken.tool.json --
{"name": "broken"
-- mixed/tools/coding.tool.json --
{"name": "coding", "description": "d", "modes": ["Coding"], "command": {"program": "echo", "args": ["coding"]}}
-- prose/SKILL.md --
---
name: prose
description: Headings and no tools.
---

### step_one

Do this.
-- tools/say.tool.json --
{"name": "say_it", "description": "Says a word.", "parameters": {"word": {"type": "string", "required": true}}, "command": {"program": "echo", "args": ["loose", "{{word}}"]}}
-- tools/secret.txt --
x
`

// Tools of every format are enabled and run in the same way, and an invalid file only
// disables its own tools.
func TestFormats(t *testing.T) {
	needShell(t)
	w := newWorld(t, threeFormats)
	w.answer = decide("once")
	w.initialize()
	listed := make(map[string]map[string]any)
	for _, p := range objects(w.ok("capability_packs_list", nil)["packs"]) {
		listed[p["pack_id"].(string)] = p
	}
	for id, want := range map[string]bool{"mixed": true, "prose": false, "say-it": true} {
		if listed[id]["has_tools_json"] != want {
			t.Errorf("list: %s = %v, want has_tools_json %v", id, listed[id], want)
		}
	}
	problems, _ := listed["mixed"]["problems"].([]any)
	if len(problems) != 1 || !strings.HasPrefix(problems[0].(string), "tools/broken.tool.json:") {
		t.Errorf("list: problems = %v, want that of the broken file", problems)
	}

	var names []string
	for _, tool := range objects(w.enable("mixed")["tools"]) {
		names = append(names, tool["tool"].(string))
	}
	if want := []string{"from_list", "from_pack", "from_md"}; !slices.Equal(names, want) {
		t.Errorf("enable_tools = %v, want %v", names, want)
	}
	for tool, want := range map[string]string{"from_list": "list a b\n", "from_pack": "pack a b\n", "from_md": "md a b\n"} {
		ran := w.ok("mixed__"+tool, map[string]any{"word": "a b"})
		out, _ := ran["stdout"].(string)
		if tool == "from_md" {
			out, _ = ran["output"].(string) // both streams as one
		}
		if out != want || ran["ok"] != true {
			t.Errorf("%s = %v, want the output %q", tool, ran, want)
		}
	}
	w.fails("invalid_tools", "capability_packs_enable_tools", map[string]any{"pack_id": "prose"})
}

// A loose tool is a pack of one file.
func TestLooseTool(t *testing.T) {
	needShell(t)
	w := newWorld(t, threeFormats)
	w.answer = decide("once")
	w.initialize()
	doc := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "say-it"})["entry_doc"].(map[string]any)
	if text := doc["content"].(string); doc["path"] != "say.tool.json" || !strings.HasPrefix(text, "# say_it\n\nSays a word.\n") ||
		!strings.Contains(text, "`say_it(word: string)`") || !strings.HasSuffix(text, "    echo\n    loose\n    {{word}}\n") {
		t.Errorf("open_docs = %v, want name, description, parameters and command", doc)
	}
	if entries := objects(w.ok("capability_packs_read_file", map[string]any{"pack_id": "say-it", "path": "."})["entries"]); len(entries) != 1 || entries[0]["name"] != "say.tool.json" {
		t.Errorf("read_file lists %v, want the file alone", entries)
	}
	w.fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "say-it", "path": "secret.txt"})
	w.enable("say-it")
	if ran := w.ok("say-it__say_it", map[string]any{"word": "x y"}); ran["stdout"] != "loose x y\n" {
		t.Errorf("the run = %v, want stdout %q", ran, "loose x y\n")
	}
	// It has no folder to run in, and no programs.
	for _, args := range []map[string]any{
		{"pack_id": "say-it", "command": "./say.tool.json"},
		{"pack_id": "say-it", "command": "echo", "cwd_policy": "pack_root"},
	} {
		if out, isError := w.tool("capability_packs_exec_best_effort", args); !isError {
			t.Errorf("exec_best_effort %v = %v, want an error", args, out)
		} else if e := out["error"].(map[string]any); e["code"] == toolerr.CodeInternalError {
			t.Errorf("exec_best_effort %v = %v, want to be told why", args, e)
		}
	}
	// Other files beside it do not matter; changing the file itself does.
	w.put("tools/secret.txt", "y", 0o644)
	w.answer = func(string, map[string]any) map[string]any {
		w.put("tools/secret.txt", "z", 0o644)
		return decide("once")("", nil)
	}
	w.ok("say-it__say_it", map[string]any{"word": "x"})
	w.answer = func(string, map[string]any) map[string]any {
		w.put("tools/say.tool.json", `{"name": "say_it", "description": "Other.", "parameters": {"word": {"type": "string", "required": true}}, "command": {"program": "echo", "args": ["other"]}}`, 0o644)
		return decide("once")("", nil)
	}
	w.fails("denied", "say-it__say_it", map[string]any{"word": "x"})
}

// A tool for another mode is not offered.
func TestToolModes(t *testing.T) {
	needShell(t)
	for mode, want := range map[string]int{"Global": 3, "Coding": 4} {
		w := newWorld(t, threeFormats, func(s *setup) { s.server.Mode, s.packs.Mode = mode, mode })
		w.answer = decide("once")
		w.initialize()
		if tools := objects(w.enable("mixed")["tools"]); len(tools) != want {
			t.Errorf("mode %s: enable_tools = %v, want %d tools", mode, tools, want)
		}
	}
}

// Metadata returns the block that is in the instructions.
func TestMetadata(t *testing.T) {
	w := newWorld(t, threeFormats)
	instructions := w.initialize()["instructions"].(string)
	catalog := w.lib.Catalog(t.Context())
	if len(catalog.Attached()) != 3 {
		t.Fatalf("%d packs are attached, want 3", len(catalog.Attached()))
	}
	metadata := func(forbidden string) string {
		return offer.New(offer.Options{
			Forbids: func(_ gate.Kind, id string) bool { return id == forbidden }, Exposed: toolname.Plain, Description: 1024,
		}).Metadata(catalog, toolfiles.New(tools.Limits{}, "").Once())
	}
	block := metadata("")
	if !strings.HasSuffix(instructions, block) || !strings.HasPrefix(block, "Capability Packs (attached; metadata only):\n- pack_id: mixed\n") {
		t.Errorf("Metadata = %q, want the end of the instructions %q", block, instructions)
	}
	if block := metadata("mixed"); strings.Contains(block, "mixed") || strings.Count(block, "pack_id") != 2 {
		t.Errorf("Metadata = %q, want the two packs that are not forbidden", block)
	}
}
