package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

var baseTools = []string{
	"capability_packs_call_tool", "capability_packs_enable_tools", "capability_packs_exec_best_effort",
	"capability_packs_list", "capability_packs_open_docs", "capability_packs_read_file",
}

// A complete conversation, from names and descriptions to a line in the audit log, with a
// person who approves each step.
func TestWholeWay(t *testing.T) {
	for _, over := range []transport{overStdio, overHTTP, overSSE} {
		for _, version := range []string{v20250618, v20251125, v20260728} {
			t.Run(string(over)+"/"+version, func(t *testing.T) {
				t.Parallel()
				walk(t, over, version)
			})
		}
	}
}

func walk(t *testing.T, over transport, version string) {
	w := newWorld(t)
	w.over = over
	c := w.connect(version, choose("once"))
	pack := filepath.Join(w.packs, "field-notes")

	// Metadata: available before any call.
	init := c.InitializeResult()
	if init.ServerInfo == nil || init.ServerInfo.Name != "packs-mcp" {
		t.Errorf("serverInfo = %+v, want packs-mcp", init.ServerInfo)
	}
	if caps := init.Capabilities; caps.Tools == nil || !caps.Tools.ListChanged {
		t.Errorf("capabilities = %+v, want tools with listChanged", caps)
	}
	const block = `Capability Packs (attached; metadata only):
- pack_id: field-notes
  description: Keep short notes from the field. Use when asked to write down an observation.
  has_tools_json: true
- pack_id: plain
  description: A document and nothing else.
  has_tools_json: false
`
	if !strings.Contains(init.Instructions+"\n", block) || len(utf16.Encode([]rune(init.Instructions))) > 2048 {
		t.Errorf("instructions = %q, want at most 2,048 characters with %q", init.Instructions, block)
	}
	if diff := cmp.Diff(baseTools, c.list()); diff != "" {
		t.Errorf("the tools at first (-want +got):\n%s", diff)
	}
	if got := c.tools["capability_packs_list"].Description + "\n"; !strings.Contains(got, block) {
		t.Errorf("the description of list = %q, want %q in it", got, block)
	}
	check(t, "list", c.ok("capability_packs_list", nil), map[string]any{"packs": []any{
		map[string]any{
			"pack_id": "field-notes", "name": "field-notes", "has_tools_json": true, "source": "flag",
			"description": "Keep short notes from the field. Use when asked to write down an observation.",
			"tags":        []any{"notes", "weather"},
		},
		map[string]any{
			"pack_id": "plain", "name": "plain", "has_tools_json": false, "source": "flag",
			"description": "A document and nothing else.",
		},
	}})
	if asked := c.questions(); len(asked) > 0 {
		t.Errorf("metadata asked %q, want no question", asked[0].Message)
	}

	// Open.
	check(t, "open_docs", c.ok("capability_packs_open_docs", map[string]any{"pack_id": "field-notes"}), map[string]any{
		"folder": pack,
		"entry_doc": map[string]any{
			"path":    "SKILL.md",
			"content": "# Field notes\n\nRead `docs/guide.md`, then call the tool `note`.\n",
		},
	})
	digest := c.question("Open documents field-notes",
		`pack: "`+pack+`"`,
		"trust: yours, from a folder you named or own",
		`asked by: a client that calls itself "e2e 1.2"`,
		"The pack says of itself: Keep short notes from the field. Use when asked to write down an observation.",
	)

	const guide = "# How to write a note\n\nSay what you saw: 雨 is rain, ☀ is sun.\nOne observation a note.\n"

	// Read: a folder, then a file page by page, with one approval for the chat.
	check(t, "read_file of a folder", c.ok("capability_packs_read_file", map[string]any{"pack_id": "field-notes", "path": "docs"}), map[string]any{
		"path": "docs", "truncated": false,
		"entries": []any{map[string]any{"name": "guide.md", "type": "file", "size_bytes": float64(len(guide))}},
	})
	c.question("Read docs field-notes")
	c.answers(choose("chat"))
	cut := strings.Index(guide, "雨") // a page never ends inside a character
	check(t, "read_file", c.ok("capability_packs_read_file", map[string]any{
		"pack_id": "field-notes", "path": "docs/guide.md", "length": cut + 1,
	}), map[string]any{
		"path": "docs/guide.md", "content": guide[:cut], "encoding": "utf-8", "mime": "text/markdown",
		"size_bytes": float64(len(guide)), "truncated": true, "next_offset": float64(cut),
	})
	c.question("Read docs/guide.md field-notes")
	check(t, "read_file of the rest", c.ok("capability_packs_read_file", map[string]any{
		"pack_id": "field-notes", "path": "docs/guide.md", "offset": cut,
	}), map[string]any{
		"path": "docs/guide.md", "content": guide[cut:], "encoding": "utf-8", "mime": "text/markdown",
		"size_bytes": float64(len(guide)), "truncated": false,
	})
	if asked := c.questions(); len(asked) > 0 {
		t.Errorf("the second page asked %q, want no question under the approval for this chat", asked[0].Message)
	}
	c.answers(choose("once"))

	// Enable, list_changed, list again.
	check(t, "enable_tools", c.ok("capability_packs_enable_tools", map[string]any{
		"pack_id": "field-notes", "tools": []string{"note", "fail"},
	}), map[string]any{
		"enabled": true,
		"tools": []any{
			map[string]any{
				"name": "field-notes__note", "tool": "note", "description": "Write one note into the workspace.",
				"signature": "note(file: string, text: string, stars?: integer = 3)",
				"input_schema": map[string]any{
					"type": "object", "required": []any{"file", "text"}, "additionalProperties": false,
					"properties": map[string]any{
						"file":  map[string]any{"type": "string", "pattern": "^[a-z0-9-]+$", "description": "Name of the note."},
						"text":  map[string]any{"type": "string", "minLength": 1.0},
						"stars": map[string]any{"type": "integer", "minimum": 1.0, "maximum": 5.0, "default": 3.0},
					},
				},
			},
			map[string]any{
				"name": "field-notes__fail", "tool": "fail", "description": "Complain and exit with 3.",
				"signature": "fail()",
			},
		},
	})
	c.question("Enable 2 tools field-notes", "note", "fail")
	c.changed()
	want := append(slices.Clone(baseTools), "field-notes__fail", "field-notes__note")
	if diff := cmp.Diff(want, c.list()); diff != "" {
		t.Errorf("the tools after enable_tools (-want +got):\n%s", diff)
	}
	note := c.tools["field-notes__note"]
	if note.Annotations == nil || note.Annotations.ReadOnlyHint || note.Title != "Write a note" {
		t.Errorf("the tool = %+v with %+v, want its title and no readOnlyHint", note, note.Annotations)
	}
	check(t, "the tool's schema", note.InputSchema, map[string]any{
		"type": "object",
		"properties": map[string]any{
			"file":  map[string]any{"type": "string", "pattern": "^[a-z0-9-]+$", "description": "Name of the note."},
			"text":  map[string]any{"type": "string", "minLength": 1.0},
			"stars": map[string]any{"type": "integer", "minimum": 1.0, "maximum": 5.0, "default": 3.0},
		},
		"required": []any{"file", "text"}, "additionalProperties": false,
	})

	// Run it as a tool of its own.
	const text = `two words; $HOME "quoted"`
	const written = text + "\n5 stars\n"
	ran := c.ok("field-notes__note", map[string]any{"file": "first", "text": text, "stars": 5})
	workspace, level := envelope(t, ran, map[string]any{
		"ok": true, "exit_code": 0.0, "truncated": false,
		"stdout": "{\"file\": \"first\", \"stars\": 5}\n", "stderr": "", "parsed": map[string]any{"file": "first", "stars": 5.0},
		"changes": []any{map[string]any{"folder": w.workspace, "applied": []any{"notes", "notes/first.txt"}}},
		"artifacts": []any{map[string]any{
			"path": "notes/first.txt", "file": filepath.Join(w.workspace, "notes", "first.txt"), "type": "file", "mime": "text/plain", "size_bytes": float64(len(written)),
		}},
	})
	if again := c.question("Run note field-notes",
		`program: "`+filepath.Join(pack, "scripts", "note.sh")+`"`,
		`argument 1: "first"`, `argument 2: "two words; $HOME \"quoted\""`, `argument 3: "5"`,
		`folder: "`+w.workspace+`"`,
		"sandbox: "+level,
		`pack: "`+pack+`"`,
		"The pack says of this tool: Write one note into the workspace.",
	); again != digest {
		t.Errorf("the run was asked about with digest %q, opening with %q: want the same", again, digest)
	}

	// The artifact, on disk and from the server.
	if got, err := os.ReadFile(filepath.Join(w.workspace, "notes", "first.txt")); err != nil || string(got) != written {
		t.Errorf("the artifact is %q, %v, want the note", got, err)
	}
	check(t, "read_file of the artifact", c.ok("capability_packs_read_file", map[string]any{
		"pack_id": "workspace", "path": "notes/first.txt", "workspace": workspace,
	}), map[string]any{
		"path": "notes/first.txt", "content": written, "encoding": "utf-8", "mime": "text/plain",
		"size_bytes": float64(len(written)), "truncated": false,
	})
	c.question("Read notes/first.txt workspace")

	// Other ways to run: call_tool, with a default from the pack, and exec.
	envelope(t, c.ok("capability_packs_call_tool", map[string]any{
		"pack_id": "field-notes", "tool": "note", "arguments": map[string]any{"file": "second", "text": "x"}, "workspace": workspace,
	}), map[string]any{
		"ok": true, "exit_code": 0.0, "truncated": false,
		"stdout": "{\"file\": \"second\", \"stars\": 3}\n", "stderr": "", "parsed": map[string]any{"file": "second", "stars": 3.0},
		"changes": []any{map[string]any{"folder": w.workspace, "applied": []any{"notes/second.txt"}}},
		"artifacts": []any{map[string]any{
			"path": "notes/second.txt", "file": filepath.Join(w.workspace, "notes", "second.txt"), "type": "file", "mime": "text/plain", "size_bytes": 10.0,
		}},
	})
	c.question("Run note field-notes", `argument 3: "3"`)
	envelope(t, c.ok("capability_packs_exec_best_effort", map[string]any{
		"pack_id": "field-notes", "command": "./scripts/note.sh", "args": []string{"third", "$(id)", "1"},
	}), map[string]any{
		"ok": true, "exit_code": 0.0, "truncated": false,
		"stdout": "{\"file\": \"third\", \"stars\": 1}\n", "stderr": "", "parsed": map[string]any{"file": "third", "stars": 1.0},
		"changes": []any{map[string]any{"folder": w.workspace, "applied": []any{"notes/third.txt"}}},
		"artifacts": []any{map[string]any{
			"path": "notes/third.txt", "file": filepath.Join(w.workspace, "notes", "third.txt"), "type": "file", "mime": "text/plain", "size_bytes": 14.0,
		}},
	})
	c.question("Run field-notes", `argument 2: "$(id)"`)

	// A failing program is a result, not a protocol error.
	failed, isError := c.call(t.Context(), "field-notes__fail", nil)
	if !isError {
		t.Errorf("the tool that fails: isError = false, want true")
	}
	envelope(t, failed, map[string]any{
		"ok": false, "exit_code": 3.0, "truncated": false, "stdout": "half of it\n", "stderr": "no ink left\n",
		"error": map[string]any{"code": "command_failed", "message": "Command failed with exit code 3", "hint": "Read the output for the cause."},
	})
	c.question("Run fail field-notes", "arguments: none")
	c.unchanged()

	c.close()
	auditOfWalk(t, w.entries(), level, digest)
}

// auditOfWalk checks the entries of this conversation in the log.
func auditOfWalk(t *testing.T, entries []audit.Entry, level, digest string) {
	var got []string
	for _, e := range entries {
		got = append(got, strings.TrimSpace(string(e.Event)+" "+strings.Join(slices.DeleteFunc([]string{e.Kind, e.Tool, e.Pack, e.Decision, e.Channel}, func(s string) bool { return s == "" }), " ")))
	}
	run := func(kind, tool string, more ...string) []string {
		lines := []string{"decision " + kind + " " + tool + " field-notes once elicitation"}
		for _, event := range append([]string{"run.start", "run.end"}, more...) {
			lines = append(lines, event+" "+kind+" "+tool+" field-notes")
		}
		return lines
	}
	want := slices.Concat(
		[]string{
			"server.start",
			"decision list capability_packs_list once policy",
			"decision open capability_packs_open_docs field-notes once elicitation",
			"decision read capability_packs_read_file field-notes once elicitation",
			"decision read capability_packs_read_file field-notes chat elicitation",
			"decision read capability_packs_read_file field-notes chat grant",
			"decision enable capability_packs_enable_tools field-notes once elicitation",
		},
		run("run", "capability_packs_call_tool/note", "changes"),
		[]string{"decision read capability_packs_read_file workspace once elicitation"},
		run("run", "capability_packs_call_tool/note", "changes"),
		run("exec", "capability_packs_exec_best_effort", "changes"),
		run("run", "capability_packs_call_tool/fail"),
		[]string{"server.stop"},
	)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the audit log (-want +got):\n%s", diff)
	}
	i := slices.IndexFunc(entries, func(e audit.Entry) bool { return e.Event == audit.EventRunStart })
	decided, start, end := entries[i-1], entries[i], entries[i+1]
	if start.Run == "" || decided.Run != start.Run || end.Run != start.Run || decided.Call == "" || start.Call != decided.Call || end.Call != decided.Call {
		t.Errorf("the run's lines name runs %q, %q, %q and calls %q, %q, %q: want one run and one call", decided.Run, start.Run, end.Run, decided.Call, start.Call, end.Call)
	}
	if decided.CallDigest == "" || start.CallDigest != decided.CallDigest {
		t.Errorf("approved was call %q, started %q: want the same", decided.CallDigest, start.CallDigest)
	}
	if full := strings.TrimPrefix(start.PackDigest, "sha256:"); !strings.HasPrefix(full, digest) {
		t.Errorf("the run's pack digest is %q, want the one that was shown, %q…", start.PackDigest, digest)
	}
	if start.Client != "e2e 1.2" || start.Sandbox != level || start.Program == "" {
		t.Errorf("run.start = %+v, want the client, the program and sandbox %q", start, level)
	}
	if end.ExitCode == nil || *end.ExitCode != 0 || end.Signal != "" || !slices.Equal(end.Artifacts, []string{"notes/first.txt"}) {
		t.Errorf("run.end = %+v, want exit code 0 and the artifact", end)
	}
	last := entries[len(entries)-2]
	if last.ExitCode == nil || *last.ExitCode != 3 || last.StdoutBytes != 11 || last.StderrBytes != 12 {
		t.Errorf("run.end of the tool that fails = %+v, want exit code 3 and its bytes", last)
	}
}

// check compares a result with the expected one.
func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// envelope compares a run's envelope, except for what differs between runs. It returns two
// such values: the workspace's handle and the sandbox's level.
func envelope(t *testing.T, got, want map[string]any) (workspace, level string) {
	t.Helper()
	workspace, _ = got["workspace"].(string)
	level, _ = got["sandbox"].(string)
	id, _ := got["run_id"].(string)
	ms, isNumber := got["duration_ms"].(float64)
	if len(workspace) != 32 || !slices.Contains([]string{"none", "partial", "full"}, level) || id == "" || !isNumber || ms < 0 {
		t.Errorf("the run = %v, want workspace (128 bits), sandbox, run_id and duration_ms", got)
	}
	rest := make(map[string]any)
	for k, v := range got {
		if !slices.Contains([]string{"workspace", "sandbox", "run_id", "duration_ms"}, k) {
			rest[k] = v
		}
	}
	sets, _ := got["changes"].([]any)
	for _, set := range sets {
		set, _ := set.(map[string]any)
		if id, _ := set["set"].(string); id == "" {
			t.Errorf("the changes = %v, want the id of their set", set)
		}
		delete(set, "set")
	}
	check(t, "the run", rest, want)
	return workspace, level
}

// question checks that exactly one question was asked since the last call, that its title
// contains these words, that it shows these facts, and that it has the right answers. It
// returns the digest in the question, if there is one. It ignores line breaks.
func (c *client) question(words string, facts ...string) (digest string) {
	c.w.t.Helper()
	asked := c.questions()
	if len(asked) != 1 {
		c.w.t.Errorf("%d questions were asked, want one: %q", len(asked), words)
		return ""
	}
	title := titleOf(asked[0].Message)
	for word := range strings.FieldsSeq(words) {
		if !strings.Contains(title, word) {
			c.w.t.Errorf("the question has the title %q, want %q in it", title, word)
		}
	}
	for _, want := range facts {
		if !strings.Contains(unbroken(asked[0].Message), unbroken(want)) {
			c.w.t.Errorf("the question does not say %q:\n%s", want, asked[0].Message)
		}
	}
	schema, _ := asked[0].RequestedSchema.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	decision, _ := properties["decision"].(map[string]any)
	check(c.w.t, "the form's choices", decision["enum"], any([]any{"once", "chat", "always", "deny"}))
	check(c.w.t, "what the form requires", schema["required"], any([]any{"decision"}))
	if names, _ := decision["enumNames"].([]any); len(properties) != 1 || decision["type"] != "string" || len(names) != 4 {
		c.w.t.Errorf("the form = %v, want one string with four choices and their titles", schema)
	}
	if _, after, ok := strings.Cut(asked[0].Message, "digest:"); ok {
		digest = strings.Fields(after)[0]
	}
	return digest
}

// titleOf returns the title of a question: the first line after the three for small windows.
func titleOf(message string) string {
	_, rest, _ := strings.Cut(message, "\n\n")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimPrefix(strings.TrimSpace(line), "▸ ")
}

// unbroken removes what breaking lines may have added to text.
func unbroken(text string) string {
	return strings.NewReplacer(" ", "", "\n", "", ">", "").Replace(text)
}
