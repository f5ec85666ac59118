package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// described has a tool whose schema says more than its signature, one whose schema
// does not, and one that makes a file.
const described = `
-- desk/SKILL.md --
---
name: desk
description: A desk.
---
# Desk
-- desk/tools.json --
{"tools": [
  {"name": "open", "description": "Open.", "command": {"program": "/bin/echo", "args": ["{{severity}}"]},
   "inputSchema": {"type": "object", "properties": {"severity": {"type": "string", "enum": ["low", "high"], "description": "How bad it is."}}, "required": ["severity"]}},
  {"name": "plain", "description": "Plain.", "command": {"program": "/bin/echo", "args": ["{{n}}"]},
   "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}},
  {"name": "make", "description": "Make.", "command": {"program": "./make.sh"}, "inputSchema": {"type": "object"}}
]}
-- desk/make.sh --
#!/bin/sh
echo made > out.txt
`

// For some models, what enable_tools returns is all that they learn about a tool.
func TestEnableGivesSchemas(t *testing.T) {
	w := newWorld(t, described)
	w.answer = decide("once")
	w.initialize()
	for _, tool := range objects(w.ok("capability_packs_enable_tools", map[string]any{"pack_id": "desk"})["tools"]) {
		schema, _ := tool["input_schema"].(map[string]any)
		if tool["tool"] != "open" {
			if schema != nil {
				t.Errorf("%v has the schema %v, want none: its signature says it all", tool["tool"], schema)
			}
			continue
		}
		severity := schema["properties"].(map[string]any)["severity"].(map[string]any)
		if severity["description"] != "How bad it is." || len(severity["enum"].([]any)) != 2 {
			t.Errorf("open has the schema %v, want the enum and its description", schema)
		}
	}
}

// A program on the user's own machine finds the file that a run made.
func TestArtifactsHaveTheirPath(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh")
	}
	w := newWorld(t, described)
	w.answer = decide("once")
	w.initialize()
	w.put("desk/make.sh", "#!/bin/sh\necho made > out.txt\n", 0o755)
	w.srv.Refresh(t.Context())
	w.enable("desk")
	made := objects(w.ok("capability_packs_call_tool", map[string]any{"pack_id": "desk", "tool": "make", "arguments": map[string]any{}})["artifacts"])
	if len(made) != 1 || made[0]["path"] != "out.txt" {
		t.Fatalf("artifacts = %v, want out.txt", made)
	}
	file, _ := made[0]["file"].(string)
	if text, err := os.ReadFile(file); err != nil || !filepath.IsAbs(file) || string(text) != "made\n" {
		t.Errorf("the file is %q with %q, %v, want the absolute path of what was made", file, text, err)
	}
}

// A model that continues with a pack that was edited meanwhile is told so, once.
func TestChangedSinceOpened(t *testing.T) {
	w := newWorld(t, triage)
	w.answer = decide("once")
	w.initialize()
	read := func() (note string) {
		t.Helper()
		note, _ = w.ok("capability_packs_read_file", map[string]any{"pack_id": "triage", "path": "SKILL.md"})["note"].(string)
		return note
	}
	if note := read(); note != "" {
		t.Errorf("before the pack was opened, the note is %q", note)
	}
	w.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if note := read(); note != "" {
		t.Errorf("of a pack that is as it was, the note is %q", note)
	}
	w.put("triage/more.md", "more", 0o644)
	w.srv.Refresh(t.Context())
	if note := read(); note != "Pack triage changed since you opened it. Open it again before you rely on its documents." {
		t.Errorf("after an edit, the note is %q", note)
	}
	if note := read(); note != "" {
		t.Errorf("the note comes twice: %q", note)
	}
	w.put("triage/more.md", "still more", 0o644)
	w.srv.Refresh(t.Context())
	if got := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"}); got["note"] != nil {
		t.Errorf("opening has the note %v", got["note"])
	}
	if note := read(); note != "" {
		t.Errorf("after it was opened again, the note is %q", note)
	}
}

// Clients that show their model both the text and the structure get an error only
// once.
func TestErrorsOnce(t *testing.T) {
	for client, once := range map[string]bool{"gemini-cli-mcp-client-packs": true, "qwen-cli-mcp-client-packs": true, "claude-code": false} {
		w := newWorld(t, triage)
		w.request("initialize", map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": client, "version": "1"},
		})
		w.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
		r := result(t, w.request("tools/call", map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "nowhere"}}))
		text := objects(r["content"])[0]["text"].(string)
		if r["isError"] != true || !strings.Contains(text, `"not_found"`) || (r["structuredContent"] == nil) != once {
			t.Errorf("%s gets %v, want the error once: %v", client, r, once)
		}
	}
}

// The document of an invoked pack refers to tools that nobody has enabled yet.
func TestInvocationNamesTools(t *testing.T) {
	w := newWorld(t, described)
	w.answer = decide("once")
	w.initialize()
	const want = `Tools of this pack, after capability_packs_enable_tools(pack_id: "desk"): open, plain, make`
	messages := objects(result(t, w.request("prompts/get", map[string]any{"name": "desk"}))["messages"])
	if text := messages[0]["content"].(map[string]any)["text"].(string); !strings.HasSuffix(text, want) {
		t.Errorf("the prompt says %q, want at its end %q", text, want)
	}
	opened := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "desk", "arguments": "x"})
	if text := opened["entry_doc"].(map[string]any)["content"].(string); !strings.HasSuffix(text, want) {
		t.Errorf("the invocation says %q, want at its end %q", text, want)
	}
	opened = w.ok("capability_packs_open_docs", map[string]any{"pack_id": "desk"})
	if text := opened["entry_doc"].(map[string]any)["content"].(string); strings.Contains(text, "Tools of this pack") {
		t.Errorf("opened as it is, the document says %q", text)
	}
}
