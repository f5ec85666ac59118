//go:build unix

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// twoPacks is a pack that a person trusts, with other packs beside and inside it.
var twoPacks = triage + `
-- triage/inner/SKILL.md --
---
name: inner
description: A pack in a pack.
---
-- triage/inner/s.sh --
#!/bin/sh
echo inner
-- evil/SKILL.md --
---
name: evil
description: Another pack.
---
-- evil/s.sh --
#!/bin/sh
echo evil
-- evil/s.py --
print("evil")
-- evil/sub/deep.sh --
#!/bin/sh
echo deep
`

const execMethod = "capability_packs_exec_best_effort"

// §9.15: what is in another pack does not run in the name of the pack that was
// called, whatever path leads to it.
func TestForeignPrograms(t *testing.T) {
	needShell(t)
	for _, attached := range []bool{true, false} {
		w := newWorld(t, twoPacks, func(s *setup) {
			if !attached {
				s.packs.Roots[0].AttachAll, s.packs.Roots[0].Attach = false, []string{"triage"}
			}
		})
		w.answer = decide("once")
		w.initialize()
		root, err := filepath.EvalSymlinks(w.root)
		if err != nil {
			t.Fatal(err)
		}
		outside, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		link := func(target, name string) string {
			path := filepath.Join(outside, name)
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			return path
		}
		script := func(line, name string) string {
			path := filepath.Join(outside, name)
			if err := os.WriteFile(path, []byte(line+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			return path
		}
		evil := filepath.Join(root, "evil/s.sh")
		if err := os.Symlink("/bin/sh", filepath.Join(root, "evil/shell")); err != nil {
			t.Fatal(err)
		}
		code := "path_denied"
		if !attached {
			code = "not_attached"
		}
		ws := w.srv.chats.All()[0].Workspaces.First().Dir
		for about, args := range map[string]map[string]any{
			"its path":                     {"command": evil},
			"a path with ..":               {"command": filepath.Join(root, "triage") + "/../evil/s.sh"},
			"deeper":                       {"command": filepath.Join(root, "evil/sub/deep.sh")},
			"a link to the script":         {"command": link(evil, "l1")},
			"a link to the folder":         {"command": filepath.Join(link(filepath.Join(root, "evil"), "l2"), "s.sh")},
			"a link that lies in it":       {"command": filepath.Join(root, "evil/shell")},
			"a link to a link in it":       {"command": link(filepath.Join(root, "evil/shell"), "l3")},
			"an interpreter":               {"command": script("#!"+evil, "i1")},
			"an interpreter's interpreter": {"command": script("#!"+script("#!"+evil, "i2"), "i3")},
			"what env(1) starts":           {"command": script("#!/usr/bin/env "+evil, "i4")},
			"an interpreter's argument":    {"command": script("#!/bin/sh "+evil, "i5")},
			"an argument":                  {"command": "/bin/sh", "args": []string{evil}},
			"an option's value":            {"command": "/bin/sh", "args": []string{"--file=" + evil}},
			"a value at an option":         {"command": "/bin/sh", "args": []string{"-f" + evil}},
			"an argument behind @":         {"command": "/bin/sh", "args": []string{"@" + evil}},
			"its folder":                   {"command": "/bin/sh", "args": []string{filepath.Join(root, "evil")}},
			"a folder in it":               {"command": "/bin/sh", "args": []string{"-C" + filepath.Join(root, "evil/sub")}},
			"a relative path":              {"command": "/bin/sh", "args": []string{relative(t, ws, evil)}},
			"a relative path, in the pack": {"command": "/bin/sh", "args": []string{"../evil/s.sh"}, "cwd_policy": "pack_root"},
			"one of a list":                {"command": "/bin/sh", "args": []string{"x:" + evil + ":y"}},
			"through /proc":                {"command": "/bin/sh", "args": []string{"/proc/self/root" + evil}},
			"through another's /proc":      {"command": "/bin/sh", "args": []string{"/proc/1/root" + evil}},
			"through /proc, twice":         {"command": "/bin/sh", "args": []string{"-f/proc/self/root/proc/self/root" + evil}},
			"through its own folder":       {"command": "/bin/sh", "args": []string{"/proc/self/cwd/" + relative(t, ws, evil)}},
			"a pack in the pack":           {"command": "./inner/s.sh"},
			"a pack in the pack, in full":  {"command": filepath.Join(root, "triage/inner/s.sh")},
		} {
			args["pack_id"] = "triage"
			e := w.fails(code, execMethod, args)
			if hint, _ := e["hint"].(string); hint == "" || attached && !strings.Contains(hint, "pack_id") {
				t.Errorf("%s: the error %v does not say what to do", about, e)
			}
		}
		content, isError := w.tool(execMethod, map[string]any{"pack_id": "triage", "command": "/proc/self/root" + evil})
		if !isError {
			t.Errorf("a program through /proc = %v, want an error", content)
		}
		if len(w.asked) != 0 {
			t.Errorf("%d questions were asked, want none:\n%s", len(w.asked), w.asked[0])
		}
		if attached {
			if got := w.ok(execMethod, map[string]any{"pack_id": "evil", "command": evil}); got["stdout"] != "evil\n" || !says(w.lastQuestion(), "for pack evil") {
				t.Errorf("the pack's own call = %v, asked\n%s\nwant it to run as its own", got, w.lastQuestion())
			}
		}
		// A copy and a hard link are different files, whose bytes are shown and
		// bound.
		hard := filepath.Join(outside, "hard")
		if err := os.Link(evil, hard); err != nil {
			t.Skip("no hard links here: ", err)
		}
		if got := w.ok(execMethod, map[string]any{"pack_id": "triage", "command": hard}); got["stdout"] != "evil\n" || !says(w.lastQuestion(), hard) {
			t.Errorf("a hard link = %v, asked\n%s", got, w.lastQuestion())
		}
	}
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

// A declared tool whose program, or fixed argument, is in another pack cannot be
// called, and cannot be used to get around a rule that denies the other pack.
func TestForeignTools(t *testing.T) {
	needShell(t)
	w := newWorld(t, twoPacks, func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Deny, Pack: "evil", Where: "test"}}
	})
	w.answer = decide("once")
	w.initialize()
	root, err := filepath.EvalSymlinks(w.root)
	if err != nil {
		t.Fatal(err)
	}
	evil := filepath.Join(root, "evil/s.sh")
	w.put("triage/tools.json", `{"tools": [
 {"name": "direct", "inputSchema": {"type": "object"}, "command": ["`+evil+`"]},
 {"name": "fixed", "inputSchema": {"type": "object"}, "command": ["/bin/sh", "`+evil+`"]}]}`, 0o644)
	w.refresh()
	w.enable("triage")
	for _, tool := range []string{"triage__direct", "triage__fixed"} {
		if e := w.fails("not_attached", tool, nil); strings.Contains(e["message"].(string), `"evil"`) {
			t.Errorf("%s: %v names a pack that a rule hides", tool, e)
		}
	}
	for _, e := range w.entries() {
		if e.Event == "run.start" {
			t.Error("a program was started")
		}
	}
	if gate.Kind(w.entries()[0].Kind) == gate.KindRun {
		t.Error("the log begins with a run")
	}
}

// A folder that looks like a pack but is in no root is not a pack: its programs are
// ordinary files, and an answer about them holds once.
func TestLooksLikePack(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	w.answer = decide("once")
	w.initialize()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"SKILL.md": "---\nname: stray\ndescription: x\n---\n", "bin/s.sh": "#!/bin/sh\necho stray\n"} {
		path := filepath.Join(outside, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []map[string]any{
		{"command": filepath.Join(outside, "bin/s.sh")},
		{"command": "/bin/sh", "args": []string{filepath.Join(outside, "bin/s.sh")}},
	} {
		args["pack_id"] = "triage"
		w.ok(execMethod, args)
		if q := w.lastQuestion(); !says(q, "only once") || !says(q, "looks like a pack") {
			t.Errorf("the question about %v is\n%s\nwant that it looks like a pack", args, q)
		}
	}
}
