package server

import (
	"path/filepath"
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
	if q := w.asked[0]; !says(q, "for pack bench") || !says(q, `2: "$HOME"`) {
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

// "For this chat" covers the exact command and folder, nothing near it.
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
