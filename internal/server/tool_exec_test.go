package server

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestExec(t *testing.T) {
	needShell(t)
	w := newWorld(t, workbench)
	w.answer = decide("once")
	w.initialize()
	pack, err := filepath.EvalSymlinks(filepath.Join(w.root, "bench"))
	if err != nil {
		t.Fatal(err)
	}
	exec := func(args map[string]any) map[string]any {
		args["pack_id"] = "bench"
		return args
	}
	for _, c := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"command": "./args.sh", "args": []string{"a b", "$HOME", "--x", ""}}, "<a b><$HOME><--x><>"},
		{map[string]any{"command": "./args.sh"}, ""},
		{map[string]any{"command": "./pwd.sh", "cwd_policy": "pack_root"}, pack + "\n"},
		{map[string]any{"command": "printf", "args": []string{"%s", "from PATH"}}, "from PATH"},
		{map[string]any{"command": "/bin/sh", "args": []string{"-c", "printf x"}}, "x"},
	} {
		got := w.ok("capability_packs_exec_best_effort", exec(c.args))
		if text, _ := got["stdout"].(string); text != c.want {
			t.Errorf("exec %v = %q, want %q", c.args, text, c.want)
		}
	}
	if q := w.asked[0]; !says(q, "for pack bench") || !says(q, `argument 2: "$HOME"`) {
		t.Errorf("the question is:\n%s", q)
	}
	asked := len(w.asked)
	for _, c := range []struct {
		name, code string
		args       map[string]any
	}{
		{"a command line", "program_not_found", map[string]any{"command": "ls -l"}},
		{"out of the pack", "program_not_found", map[string]any{"command": "./../x.sh"}},
		{"a relative path", "program_not_found", map[string]any{"command": "bin/x"}},
		{"not there", "program_not_found", map[string]any{"command": "./none.sh"}},
		{"not executable", "permission_denied", map[string]any{"command": "./plain.txt"}},
		{"a folder", "permission_denied", map[string]any{"command": "/"}},
		{"NUL in an argument", "invalid_arguments", map[string]any{"command": "./args.sh", "args": []string{"a\x00"}}},
		{"NUL in the name", "program_not_found", map[string]any{"command": "a\x00"}},
		{"no command", "invalid_arguments", map[string]any{}},
		{"args as text", "invalid_arguments", map[string]any{"command": "./args.sh", "args": "a b"}},
		{"a number among args", "invalid_arguments", map[string]any{"command": "./args.sh", "args": []any{"a", 1}}},
		{"another folder", "invalid_arguments", map[string]any{"command": "./args.sh", "cwd_policy": "/tmp"}},
		{"a shell's wish", "invalid_arguments", map[string]any{"command": "./args.sh", "shell": true}},
		{"another workspace", "not_found", map[string]any{"command": "./args.sh", "workspace": "../x"}},
	} {
		if e := w.fails(c.code, "capability_packs_exec_best_effort", exec(c.args)); e["hint"] == nil {
			t.Errorf("%s: %v has no hint", c.name, e)
		}
	}
	if len(w.asked) != asked {
		t.Errorf("%d questions were asked about what cannot be done:\n%s", len(w.asked)-asked, w.asked[len(w.asked)-1])
	}
}

// "For this chat" covers exactly this command and folder.
func TestExecGrant(t *testing.T) {
	needShell(t)
	w := newWorld(t, workbench)
	w.answer = decide("chat")
	w.initialize()
	call := func(args ...string) map[string]any {
		return map[string]any{"pack_id": "bench", "command": "./args.sh", "args": args}
	}
	for i, args := range []map[string]any{
		call("a"), call("a"), call("a", "b"), call("a b"), call("a"),
		{"pack_id": "bench", "command": "./args.sh", "args": []string{"a"}, "cwd_policy": "pack_root"},
		{"pack_id": "bench", "command": "./fail.sh"},
	} {
		want := []int{1, 1, 2, 3, 3, 4, 5}[i]
		w.tool("capability_packs_exec_best_effort", args)
		if len(w.asked) != want {
			t.Errorf("call %d %v: %d questions so far, want %d", i, args, len(w.asked), want)
		}
	}
}

// If a model writes a command wrongly, the hint says how to write it, and following
// the hint works.
func TestExecHints(t *testing.T) {
	needShell(t)
	const tree = `
-- p/SKILL.md --
---
name: p
description: d
---
-- p/scripts/say.sh --
#!/bin/sh
echo "said $*"
-- p/scripts/make.sh --
#!/bin/sh
printf '#!/usr/bin/env sh\necho "made says $*"\n' > made.sh
printf 'nothing' > data.bin
chmod +x made.sh data.bin
`
	w := newWorld(t, tree)
	w.answer = decide("once")
	w.initialize()
	exec := func(command string, args ...string) map[string]any {
		return map[string]any{"pack_id": "p", "command": command, "args": args}
	}
	w.ok("capability_packs_exec_best_effort", exec("./scripts/make.sh"))
	workspace := workspaceOf(t, w)
	for _, tt := range []struct {
		args         map[string]any
		hint, prints string // prints: what the call in the hint prints; empty: the hint has none
	}{
		{exec("echo a b"), `"command":"echo","args":["a","b"]`, "a b\n"},
		{exec("echo a", "b c"), `"command":"echo","args":["a","b c"]`, "a b c\n"},
		{exec("scripts/say.sh", "x"), `"command":"./scripts/say.sh","args":["x"]`, "said x\n"},
		{exec("scripts/say.sh x y"), `"command":"./scripts/say.sh","args":["x","y"]`, "said x y\n"},
		{exec("./scripts/say.sh x"), `"command":"./scripts/say.sh","args":["x"]`, "said x\n"},
		{exec("./made.sh", "x"), `"command":"sh","args":["made.sh","x"]`, "made says x\n"},
		{exec("made.sh x"), `"command":"sh","args":["made.sh","x"]`, "made says x\n"},
		{exec("./data.bin"), "name its interpreter", ""},
		{exec(`scripts\say.sh`, "x"), `"command":"./scripts/say.sh","args":["x"]`, "said x\n"},
		{exec("say.sh", "x"), `"command":"./scripts/say.sh","args":["x"]`, "said x\n"},
		{exec("./say.sh", "x"), `"command":"./scripts/say.sh","args":["x"]`, "said x\n"},
		{exec("say.sh x"), `"command":"./scripts/say.sh","args":["x"]`, "said x\n"},
		{exec("./scripts"), `a folder of the pack: name a file in it as the command, such as "./scripts/make.sh"`, ""},
		{exec("scripts/"), "a folder of the pack", ""},
		{exec("LANG=C echo x"), `"command":"env"`, ""},
		{exec("  "), "names one program", ""},
		{exec("echo 'a b' | cat"), "there is no shell", ""},
		{exec("./none.sh"), "which program is missing", ""},
		{exec("../p/scripts/say.sh"), "which program is missing", ""},
	} {
		code := "program_not_found"
		if strings.HasPrefix(tt.hint, "a folder of the pack") && tt.args["command"] == "./scripts" {
			code = "permission_denied" // the file exists, but is not a program
		}
		e := w.fails(code, "capability_packs_exec_best_effort", tt.args)
		hint, _ := e["hint"].(string)
		if !strings.Contains(hint, tt.hint) || strings.Contains(hint, workspace) {
			t.Errorf("%v: hint %q, want %q and no path of the workspace", tt.args, hint, tt.hint)
			continue
		}
		if tt.prints == "" {
			continue
		}
		var followed map[string]any
		if err := json.Unmarshal([]byte("{"+tt.hint+`,"pack_id":"p"}`), &followed); err != nil {
			t.Fatal(err)
		}
		if got := w.ok("capability_packs_exec_best_effort", followed); got["stdout"] != tt.prints {
			t.Errorf("%v, as the hint says = %v, want %q", followed, got, tt.prints)
		}
	}
}
