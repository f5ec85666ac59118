package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// named holds packs with tools that have similar names.
const named = `
-- git-helper/SKILL.md --
---
name: Git Helper
description: Git.
---
Git.
-- git-helper/tools.json --
{"tools": [{"name": "git_status", "description": "d", "command": {"program": "echo", "args": ["git"]}}, {"name": "log", "description": "d", "command": {"program": "echo", "args": ["log"]}}]}
-- acme/deep/SKILL.md --
---
name: deep
description: Deep.
---
Deep.
-- acme/deep/tools.json --
{"tools": [{"name": "dig", "description": "d", "command": {"program": "echo", "args": ["dig"]}}, {"name": "log", "description": "d", "command": {"program": "echo", "args": ["deep log"]}}]}
-- other/deep2/SKILL.md --
---
name: git helper
description: Another with the same name.
---
Other.
`

// A tool of a pack can be called by its listed name, as PACK__TOOL, by its declared
// name, and behind a client's prefix. So can base tools.
func TestNamesOfTools(t *testing.T) {
	needShell(t)
	w := newWorld(t, named)
	w.answer = decide("chat")
	w.initialize()
	w.enable("git-helper", "git_status")
	w.enable("acme/deep", "dig")
	for name, want := range map[string]string{
		"git-helper__git_status":                 "git",
		"git_status":                             "git", // specs/skill-md-tools, specs/tool-packs
		"GIT-HELPER__git-status":                 "git",
		"git helper__git_status":                 "git", // of the two packs with this name, only one has the tool
		"mcp__packs-mcp__git-helper__git_status": "git",
		"mcp__packs-mcp__git_status":             "git",
		"mcp_packs_git-helper__git_status":       "git",
		"packs-mcp_git-helper__git_status":       "git",
		"packs-mcp-git-helper__git_status":       "git",
		"packs-mcp_git_status":                   "git",
		"mcp_packs-mcp_git_status":               "git",
		"packs_mcp-dig":                          "dig",
		"packs-mcp_status":                       "",
		"packs.git-helper__git_status":           "git",
		"work:git-helper__git_status":            "git",
		"deep__dig":                              "dig",
		"acme__deep__dig":                        "dig",
		"mcp__x__acme__deep__dig":                "dig",
		"dig":                                    "dig",
		"my-git-helper__git_status":              "", // not a client's prefix: another pack
		"legit__git_status_":                     "",
		"status":                                 "",
		"mcp__packs__status":                     "",
		"nothing":                                "",
	} {
		reply := w.request("tools/call", map[string]any{"name": name, "arguments": map[string]any{}})
		got := ""
		if r, ok := reply["result"].(map[string]any); ok {
			out, _ := r["structuredContent"].(map[string]any)["stdout"].(string)
			got = strings.TrimSpace(out)
		}
		if got != want {
			t.Errorf("tools/call %s = %v, want what prints %q", name, reply, want)
		}
		if out, isError := w.tool("capability_packs_call_tool", map[string]any{"tool": name, "arguments": map[string]any{}}); isError != (want == "") || !isError && out["stdout"] != want+"\n" {
			t.Errorf("call_tool %s = %v, want what prints %q", name, out, want)
		}
	}
	if out := w.ok("capability_packs_call_tool", map[string]any{"pack_id": "git-helper", "tool": "mcp__packs__git-helper__git_status", "arguments": map[string]any{}}); out["stdout"] != "git\n" {
		t.Errorf("call_tool with a prefix = %v", out)
	}
	for _, name := range []string{"mcp__packs-mcp__capability_packs_list", "mcp_packs_capability_packs.list", "packs:capability_packs_list", "capability_packs.list"} {
		if out := w.ok(name, map[string]any{}); len(objects(out["packs"])) != 3 {
			t.Errorf("%s = %v, want the three packs", name, out)
		}
	}

	// The error for a tool that is not enabled says so; nothing is enabled.
	if e := w.fails("not_enabled", "git-helper__log", map[string]any{}); !strings.Contains(e["message"].(string), `pack "git-helper"`) {
		t.Errorf("error = %v, want the pack", e)
	}
	// If several tools match, nothing is guessed.
	asked := len(w.asked)
	e := w.fails("not_found", "log", map[string]any{})
	near := texts(e["near"])
	slices.Sort(near)
	if diff := cmp.Diff([]string{"acme__deep__log", "git-helper__log"}, near); diff != "" || len(w.asked) != asked {
		t.Errorf("log = %v, want both candidates and no question: -want +got\n%s", e, diff)
	}
	// An enabled tool takes precedence over one that is not enabled.
	w.enable("git-helper", "log")
	if out := w.ok("log", map[string]any{}); out["stdout"] != "log\n" {
		t.Errorf("log = %v, want the one that is enabled", out)
	}
	w.enable("acme/deep", "log")
	w.fails("not_found", "mcp__packs__log", map[string]any{})
}

// A pack can be named by its id, its name in lists, or its URI.
func TestNamesOfPacks(t *testing.T) {
	w := newWorld(t, named)
	w.answer = decide("chat")
	w.initialize()
	for name, want := range map[string]string{
		"git-helper": "Git.\n", "GIT-HELPER": "Git.\n", "acme/deep": "Deep.\n", "deep": "Deep.\n", "DEEP": "Deep.\n",
		"skill://acme/deep": "Deep.\n", "skill://acme/deep/SKILL.md": "Deep.\n", "skill://acme/deep/": "Deep.\n", "pack://git-helper": "Git.\n",
		"skill://git-helper/SKILL.md": "Git.\n", "SKILL://acme/deep": "Deep.\n", "Skill://git-helper/SKILL.md": "Git.\n",
		"skill://nowhere": "", "skill://acme/deep/tools.json": "", "workspace://git-helper": "", "skill://": "", "skill://../git-helper": "",
	} {
		out, isError := w.tool("capability_packs_open_docs", map[string]any{"pack_id": name})
		doc, _ := out["entry_doc"].(map[string]any)
		if isError != (want == "") || !isError && doc["content"] != want {
			t.Errorf("open_docs %q = %v, want %q", name, out, want)
		}
	}
	e := w.fails("not_found", "capability_packs_open_docs", map[string]any{"pack_id": "gIT hELPER"})
	if diff := cmp.Diff([]string{"git-helper", "other/git-helper"}, texts(e["near"])); diff != "" {
		t.Errorf("the name of two packs: candidates -want +got\n%s", diff)
	}
	w.put("other/deep2/SKILL.md", "---\nname: Other One\ndescription: d\n---\n", 0o644)
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := w.ok("capability_packs_open_docs", map[string]any{"pack_id": "git helper"}); !strings.HasSuffix(out["folder"].(string), "git-helper") {
		t.Errorf("open_docs by name = %v", out)
	}
}

// An error offers a few names, the nearest ones.
func TestNearTools(t *testing.T) {
	needShell(t)
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprintf("tool_%d", i))
	}
	all = append(all, "describe_issue")
	w := newWorld(t, toolPack("many", all...))
	w.answer = decide("chat")
	w.initialize()
	for _, call := range []func(name string) map[string]any{
		func(name string) map[string]any {
			return w.fails("invalid_arguments", "capability_packs_enable_tools", map[string]any{"pack_id": "many", "tools": []string{name}})
		},
		func(name string) map[string]any {
			return w.fails("not_found", "capability_packs_call_tool", map[string]any{"pack_id": "many", "tool": name, "arguments": map[string]any{}})
		},
	} {
		if near := texts(call("describe_isue")["near"]); !slices.Equal(near, []string{"describe_issue"}) {
			t.Errorf("near describe_isue: %q", near)
		}
		for _, name := range []string{"tool_9999", "unlike"} {
			if near := texts(call(name)["near"]); len(near) != 5 {
				t.Errorf("near %s: %q, want five", name, near)
			}
		}
	}
}
