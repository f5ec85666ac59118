package server

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// ruledBy is a server with rules of the user's, who denies every question.
func ruledBy(all ...rules.Rule) option {
	return func(s *setup) { s.gate.Rules = all }
}

const wordsPack = `
-- words/SKILL.md --
---
name: words
description: d
---
### in_markdown

Say where.

#### Parameters

None.

#### Command

` + "```bash\npwd -P\n```" + `
-- wares/SKILL.md --
---
name: wares
description: d
---
-- wares/tools.json --
{"tools": [
  {"name": "anywhere", "inputSchema": {"type": "object"}, "command": ["pwd", "-P"]},
  {"name": "in_workspace", "inputSchema": {"type": "object"}, "command": {"program": "pwd", "args": ["-P"], "cwd": "workspace"}},
  {"name": "in_project", "inputSchema": {"type": "object"}, "command": {"program": "pwd", "args": ["-P"], "cwd": "project"}},
  {"name": "in_pack", "inputSchema": {"type": "object"}, "command": {"program": "pwd", "args": ["-P"], "cwd": "pack_root"}},
  {"name": "in_context", "inputSchema": {"type": "object"}, "command": {"program": "pwd", "args": ["-P"], "cwd": "{{context.cwd}}"}}
]}
-- loose.tool.json --
{"name": "loose", "description": "d", "command": {"program": "pwd", "args": ["-P"]}}
`

// If a tool names no folder, it runs in its format's usual one, and an allow rule by
// argv covers it. Any other folder must be named in the rule.
func TestUsualFolders(t *testing.T) {
	needShell(t)
	h := servertest.NewHouse(t)
	argv := rules.Rule{Effect: rules.Allow, Argv: []string{"pwd", "-P"}, Where: "c:1"}
	named := argv
	named.Cwd = "project"
	for _, tc := range []struct {
		pack, tool   string
		plain, named string // asked about under the rule, and under the rule that names the project: "" or what the question says
	}{
		{"wares", "anywhere", "", "cwd: workspace"},
		{"wares", "in_workspace", "", "cwd: workspace"},
		{"wares", "in_project", "cwd: project", ""},
		{"wares", "in_context", "cwd: project", ""},
		{"wares", "in_pack", "cwd: pack_root", "cwd: pack_root"},
		{"words", "in_markdown", "", ""},
		{"loose", "loose", "", "cwd: workspace"},
	} {
		for i, want := range []string{tc.plain, tc.named} {
			w := newWorld(t, wordsPack, lives(h), ruledBy([]rules.Rule{argv, named}[i]))
			w.answer = decide("once")
			w.initialize()
			w.enable(tc.pack)
			asked := len(w.asked)
			w.ok("capability_packs_call_tool", map[string]any{"pack_id": tc.pack, "tool": tc.tool, "arguments": map[string]any{}})
			switch more := w.asked[asked:]; {
			case want == "" && len(more) > 0:
				t.Errorf("%s under %d: asked %q", tc.tool, i, more)
			case want != "" && (len(more) != 1 || !says(more[0], "c:1 allows it only with "+want)):
				t.Errorf("%s under %d: asked %q, want one question that says %q", tc.tool, i, more, want)
			}
		}
	}
}

// A command of the model's own that runs in the pack's folder needs another rule.
func TestExecFolders(t *testing.T) {
	needShell(t)
	rule := rules.Rule{Effect: rules.Allow, Kinds: []string{"exec"}, Argv: []string{"pwd", "-P"}, Where: "c:1"}
	w := newWorld(t, wordsPack, ruledBy(rule))
	w.answer = decide("once")
	w.initialize()
	exec := map[string]any{"pack_id": "wares", "command": "pwd", "args": []string{"-P"}}
	w.ok("capability_packs_exec_best_effort", exec)
	if len(w.asked) != 0 {
		t.Errorf("in the workspace: asked %q", w.asked)
	}
	exec["cwd_policy"] = "pack_root"
	w.ok("capability_packs_exec_best_effort", exec)
	if len(w.asked) != 1 || !says(w.asked[0], "c:1 allows it only with cwd: pack_root") {
		t.Errorf("in the pack: asked %q, want one question that says what the rule lacks", w.asked)
	}
}

// A name that is declared by one tool and listed for another is refused.
func TestOneNameTwoTools(t *testing.T) {
	w := newWorld(t, toolPack("x", "y", "x__y"))
	w.answer = decide("once")
	w.initialize()
	listed := names(w.enable("x"), "name")
	call := func(tool string) map[string]any {
		return map[string]any{"pack_id": "x", "tool": tool, "arguments": map[string]any{}}
	}
	w.fails("invalid_arguments", "capability_packs_call_tool", call("x__y"))
	for _, tool := range []string{"y", listed[1]} {
		w.ok("capability_packs_call_tool", call(tool))
	}
}

// No pack's tool is listed under a name that looks like one of ours.
func TestListedLikeOurs(t *testing.T) {
	never := func(string) bool { return false }
	for _, pack := range []string{"capability", "team/capability", "Capability"} {
		name := toolname.OfPack(pack, "packs_exec_best_effort", never)
		if squeezed := strings.ReplaceAll(toolname.Fold(name), "_", ""); strings.HasPrefix(squeezed, "capabilitypacks") || len(name) > 40 {
			t.Errorf("packToolName(%q) = %q, which reads like ours", pack, name)
		}
	}
	if got := toolname.OfPack("capability", "plan", never); got != "capability__plan" {
		t.Errorf("packToolName(capability, plan) = %q", got)
	}
}
