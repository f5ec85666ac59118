//go:build unix

package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// §9.5: the question shows what a script's first line starts, and an answer for the
// chat ends when any of that changes.
func TestFirstLinesAreShown(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	w.answer = decide("chat")
	w.initialize()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sh, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	env := put("env", string(sh))
	inner := put("inner", "#!/bin/sh\necho inner\n")
	put("python3", "echo what is called python3\n")
	for _, tt := range []struct {
		name, line string
		shows      []string
		changes    string
	}{
		{"own-env", "#!" + env + " " + filepath.Join(dir, "python3"), []string{`run by: "` + env + `"`}, "python3"},
		{"script", "#!" + inner, []string{`run by: "` + inner + `"`, `run by: "/bin/sh"`}, "inner"},
		{"by-env", "#!/usr/bin/env " + inner, []string{`run by: "` + inner + `", started by "/usr/bin/env"`}, "inner"},
		{"words", "#!/usr/bin/env -S LANG=C " + inner + " -x", []string{`run by: "` + inner + `"`, `given "-x"`, `"LANG=C"`}, "inner"},
		{"argument", "#!/bin/sh " + filepath.Join(dir, "python3"), []string{`run by: "/bin/sh"`, `given "` + filepath.Join(dir, "python3") + `"`}, "python3"},
	} {
		call := map[string]any{"pack_id": "triage", "command": put(tt.name, tt.line+"\n")}
		asked := len(w.asked)
		w.ok(execMethod, call)
		w.ok(execMethod, call)
		if len(w.asked) != asked+1 {
			t.Fatalf("%s: %d questions, want one for two calls", tt.name, len(w.asked)-asked)
		}
		for _, words := range tt.shows {
			if !says(w.lastQuestion(), words) {
				t.Errorf("%s: the question does not say %q:\n%s", tt.name, words, w.lastQuestion())
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, tt.changes))
		if err != nil {
			t.Fatal(err)
		}
		put(tt.changes, string(text)+"# changed\n")
		w.ok(execMethod, call)
		if len(w.asked) != asked+2 || !says(w.lastQuestion(), "CHANGED") {
			t.Errorf("%s: %d questions, want one more after %s changed", tt.name, len(w.asked)-asked, tt.changes)
		}
	}
	asked := len(w.asked)
	for name, line := range map[string]string{
		"quoted":   "#!/usr/bin/env -S X='a python3 b' " + inner,
		"relative": "#!inner",
		"path":     "#!/usr/bin/env -S PATH=" + dir + " inner",
	} {
		if e := w.fails("program_not_found", execMethod, map[string]any{"pack_id": "triage", "command": put(name, line+"\n")}); e["hint"] == nil {
			t.Errorf("%s: %v has no hint", name, e)
		}
	}
	if len(w.asked) != asked {
		t.Error("a person was asked about a first line that cannot be followed")
	}
}

// A grant can give a run the user's whole PATH, with folders in which programs are
// not looked up. The question says if env(1) would find another program there.
func TestAnotherProgramOnTheRunsPath(t *testing.T) {
	open, bin := t.TempDir(), t.TempDir()
	for _, dir := range []string{open, bin} {
		if err := os.WriteFile(filepath.Join(dir, "lang"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(bin, "script")
	if err := os.WriteFile(script, []byte("#!/usr/bin/env lang\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h := servertest.NewHouse(t)
	w := deployWorld(t, lives(h, plan.Opening{Pack: "acme/deploy", Kinds: []string{"exec"}, Env: []string{"PATH"}}), func(s *setup) {
		s.server.Environ = append(s.server.Environ, "PATH="+open+":"+bin+":"+os.Getenv("PATH"))
	})
	asked := len(w.asked)
	w.fails("program_not_found", execMethod, map[string]any{"pack_id": "acme/deploy", "command": script})
	if len(w.asked) != asked {
		t.Errorf("a person was asked:\n%s", w.lastQuestion())
	}
	lines := w.entries()
	if e := lines[len(lines)-1]; e.Event != audit.EventRefusal || e.Code != toolerr.CodeProgramNotFound {
		t.Errorf("the last line of the log is %+v, want a refusal", e)
	}
}
