package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// standIn prints its arguments, its working folder and one variable on standard
// error, and what the tool parses on standard output.
const standIn = `#!/bin/sh
for a in "$@"; do printf '[%s]' "$a" >&2; done
printf '\n%s\n%s\n' "$PWD" "$NODE_ENV" >&2
echo '{"url": "https://linear.app/ENG-1", "other": 1}'
`

// toolPackWorld returns a server with the example in a section of specs/tool-packs.md
// as a pack called x, and stand-ins for the programs that it runs.
func toolPackWorld(t *testing.T, example string, options ...option) *world {
	t.Helper()
	needShell(t)
	a, err := txtar.ParseFile(filepath.Join("..", "packs", "tools", "toolpack", "testdata", example+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	tree := "-- x/SKILL.md --\n---\nname: x\ndescription: d\n---\n"
	for _, f := range a.Files {
		if f.Name == "x.tool.json" {
			tree += "-- x/x.tool.json --\n" + string(f.Data)
		}
	}
	bin := t.TempDir()
	for _, name := range []string{"npx", "linear", "gemini", "git"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(standIn), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options = append(options, func(s *setup) {
		s.server.Environ = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		s.server.Tools = toolfiles.New(tools.Limits{}, "Coding")
	})
	w := newWorld(t, tree, options...)
	w.answer = decide("once")
	w.initialize()
	return w
}

// callWith calls a tool of pack x, with what the user looks at.
func (w *world) callWith(tool string, args, looksAt map[string]any) map[string]any {
	w.t.Helper()
	params := map[string]any{"name": "x__" + tool, "arguments": args}
	if looksAt != nil {
		params["_meta"] = map[string]any{"packs-mcp/context": looksAt}
	}
	return result(w.t, w.request("tools/call", params))
}

// Every example of the specification runs with the arguments that it shows.
func TestToolPackExamplesRun(t *testing.T) {
	for _, tt := range []struct {
		example, tool string
		args, looksAt map[string]any
		want          string // arguments
		speak         string
	}{
		{"spec-schema", "tool_name", map[string]any{"url": "https://example.com/a b"}, nil,
			"[-y][@steipete/summarize][https://example.com/a b][--length][medium]", ""},
		{"spec-schema", "tool_name", map[string]any{"length": "short"}, map[string]any{"url": "https://example.com/"},
			"[-y][@steipete/summarize][https://example.com/][--length][short]", ""},
		{"spec-example-summarizer", "summarize_url", nil, map[string]any{"url": "https://example.com/?q=$(id)"},
			"[-y][@steipete/summarize][https://example.com/?q=$(id)][--length][medium]", ""},
		{"spec-example-linear", "create_linear_issue", map[string]any{"title": `Fix "login"; rm -rf /`}, nil,
			`[issue][create][--title][Fix "login"; rm -rf /][--team][ENG]`, "Created issue: https://linear.app/ENG-1"},
		{"spec-example-explain", "explain_code", nil, map[string]any{"selection": "a {{b}}\n`c`"},
			"[-p][Explain this code concisely:\n\na {{b}}\n`c`][--output-format][text]", ""},
		{"spec-example-git-commit", "git_commit", map[string]any{"message": "fix typo"}, nil,
			"[commit][-m][fix typo]", ""},
	} {
		t.Run(tt.example, func(t *testing.T) {
			project := t.TempDir()
			w := toolPackWorld(t, tt.example, func(s *setup) { s.server.Project = project })
			w.enable("x")
			r := w.callWith(tt.tool, tt.args, tt.looksAt)
			ran, _ := r["structuredContent"].(map[string]any)
			if ran["ok"] != true {
				t.Fatalf("calling %s = %v, want a run that worked", tt.tool, r)
			}
			got := strings.Split(ran["stderr"].(string), "\n")
			rest := got[len(got)-3:]
			if diff := cmp.Diff(tt.want, strings.Join(got[:len(got)-3], "\n")); diff != "" {
				t.Errorf("arguments of %s (-want +got):\n%s", tt.tool, diff)
			}
			if inProject := tt.tool == "git_commit"; inProject == sameDir(rest[0], w.space()) { // or in a copy of the project
				t.Errorf("%s ran in %s, in the project %v, want %v", tt.tool, rest[0], !inProject, inProject)
			}
			spoken := ""
			if meta, ok := r["_meta"].(map[string]any); ok {
				spoken, _ = meta["packs-mcp/speak"].(string)
			}
			if tt.speak != "" && (spoken != tt.speak || ran["output"] != tt.speak) {
				t.Errorf("%s shows %q and speaks %q, want %q", tt.tool, ran["output"], spoken, tt.speak)
			}
			if spoken == "" {
				t.Errorf("%s speaks nothing, and tool packs do unless they say otherwise", tt.tool)
			}
		})
	}
}

func sameDir(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// "Command": the example with an environment.
func TestToolPackCommand(t *testing.T) {
	w := toolPackWorld(t, "spec-command", func(s *setup) {
		s.server.Context = map[string]string{"selection": "from the configuration", "clipboard": "c"}
	})
	w.enable("x")
	r := w.callWith("render", map[string]any{"url": "https://example.com/"}, map[string]any{"selection": "from the client"})
	stderr := fmt.Sprint(r["structuredContent"].(map[string]any)["stderr"])
	for _, want := range []string{
		"[-y][@steipete/summarize][https://example.com/][--length][medium][--selected=from the client][none]\n", "\nproduction\n",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("render wrote %q, want %q in it", stderr, want)
		}
	}
}

// If a value is not known, the person is asked for it in the same form. Without it
// nothing runs.
func TestToolPackMissingContext(t *testing.T) {
	w := toolPackWorld(t, "spec-example-explain")
	w.enable("x")
	var form map[string]any
	fill := func(values map[string]any) {
		w.answer = func(_ string, schema map[string]any) map[string]any {
			form = schema
			return map[string]any{"action": "accept", "content": values}
		}
	}
	for _, values := range []map[string]any{
		{"decision": "once"},
		{"decision": "once", "context_selection": " "},
		{"decision": "once", "context_selection": 5},
		{"decision": "once", "context_selection": "a\x00b"},
		{"decision": "once", "context_selection": strings.Repeat("x", 17<<10)},
		{"decision": "chat", "context_selection": "x := 1"}, // a value that is filled in is for one call
		{"decision": "deny", "context_selection": "x := 1"},
	} {
		fill(values)
		w.fails("denied", "x__explain_code", map[string]any{})
	}
	properties, _ := form["properties"].(map[string]any)
	field, _ := properties["context_selection"].(map[string]any)
	if field["type"] != "string" || field["title"] == "" || fmt.Sprint(form["required"]) != "[decision]" {
		t.Errorf("the form is %v, want a text for context_selection that only allowing takes", form)
	}
	if q := w.asked[len(w.asked)-1]; !says(q, "fill in") || !says(q, "<context_selection>") {
		t.Errorf("the question is\n%s\nwant what is to be filled in, and where it goes", q)
	}
	fill(map[string]any{"decision": "once", "context_selection": "x := 1"})
	ran := w.ok("x__explain_code", map[string]any{})
	if text := fmt.Sprint(ran["stdout"], ran["stderr"]); !strings.Contains(text, "x := 1") || strings.Contains(text, "context_selection") {
		t.Errorf("the tool ran with %q, want what was filled in", text)
	}
	last := w.entries()
	start := last[slices.IndexFunc(last, func(e audit.Entry) bool { return e.Event == audit.EventRunStart })]
	if !strings.Contains(fmt.Sprint(start.Argv), "x := 1") {
		t.Errorf("the log has the arguments %q, want what was filled in", start.Argv)
	}
	w.fails("invalid_arguments", "x__explain_code", map[string]any{"selection": "x"})
}

// Examples are in descriptions, with the values that the user configured and without
// the path of the workspace.
func TestToolPackExamplesShown(t *testing.T) {
	w := toolPackWorld(t, "spec-example-summarizer", func(s *setup) {
		s.server.Context = map[string]string{"url": "https://example.com/now"}
	})
	enabled := objects(w.enable("x")["tools"])
	const want = "Summarize a webpage, article, or YouTube video\n\nExamples:\nUser: summarize this\ncall:summarize_url{url:<escape>https://example.com/now<escape>}"
	if got := fmt.Sprint(enabled[0]["description"]); !strings.HasPrefix(got, want) {
		t.Errorf("description = %q, want it to begin with %q", got, want)
	}
	if got, want := enabled[0]["signature"], "summarize_url(url?: string = context.url)"; got != want {
		t.Errorf("signature = %q, want %q", got, want)
	}
	for _, tool := range objects(result(t, w.request("tools/list", map[string]any{}))["tools"]) {
		if tool["name"] == "x__summarize_url" {
			got := fmt.Sprint(tool["description"])
			if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "(tool of the capability pack x)") {
				t.Errorf("listed description = %q", got)
			}
			return
		}
	}
	t.Error("the tool is not listed")
}

// "Examples" and skill-md-tools §3.1: examples and paragraphs keep their line breaks
// in tools/list; other control characters do not stay.
func TestDescriptionsKeepTheirLines(t *testing.T) {
	const tree = `
-- p/SKILL.md --
---
name: p
description: d
---

### md_tool

First paragraph,
still the first.

Second paragraph.

#### Parameters

None.

#### Command

` + "```bash\necho\n```" + `
-- p/few.tool.json --
{"name": "few", "description": "Summarize.\r\n\r\n\r\nOnce.\u001b[2J", "parameters": {"url": {"type": "string", "source": "context.url"}}, "command": {"program": "echo", "args": ["{{url}}"]},
 "examples": ["User: summarize this\ncall:few{url:<escape>{{url}}<escape>}", "User: tl;dr\ncall:few{}"]}
-- p/one.tool.json --
{"name": "one", "description": "One line.", "command": {"program": "echo"}}
`
	w := newWorld(t, tree, func(s *setup) { s.server.Context = map[string]string{"url": "https://example.com/"} })
	w.answer = decide("once")
	w.initialize()
	enabled := make(map[string]string)
	for _, tool := range objects(w.enable("p")["tools"]) {
		enabled[tool["tool"].(string)] = tool["description"].(string)
	}
	few := "Summarize.\n\nOnce.\\x1b[2J\n\nExamples:\nUser: summarize this\ncall:few{url:<escape>https://example.com/<escape>}\n\nUser: tl;dr\ncall:few{}"
	const of = "(tool of the capability pack p)"
	listed := make(map[string]any)
	for _, tool := range objects(result(t, w.request("tools/list", nil))["tools"]) {
		listed[tool["name"].(string)] = tool["description"]
	}
	for tool, want := range map[string]struct{ enabled, listed string }{
		"few":     {few, few + "\n\n" + of},
		"md_tool": {"First paragraph, still the first.\n\nSecond paragraph.", "First paragraph, still the first.\n\nSecond paragraph.\n\n" + of},
		"one":     {"One line.", "One line. " + of},
	} {
		if diff := cmp.Diff(want.enabled, enabled[tool]); diff != "" {
			t.Errorf("enable_tools: %s: -want +got\n%s", tool, diff)
		}
		if diff := cmp.Diff(any(want.listed), listed["p__"+tool]); diff != "" {
			t.Errorf("tools/list: %s: -want +got\n%s", tool, diff)
		}
	}
}
