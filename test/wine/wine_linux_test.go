package wine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/test/served"
)

// Set by scripts/wine.sh: the path of Wine, and the folder with the Windows programs.
const (
	wineVar     = "PACKS_MCP_WINE"
	programsVar = "PACKS_MCP_WINE_PROGRAMS"
)

// newWorld creates a Windows user's machine with one pack, the greeter.
func newWorld(t *testing.T) *served.World {
	t.Helper()
	wine, programs := os.Getenv(wineVar), os.Getenv(programsVar)
	if wine == "" || programs == "" {
		t.Skip("it needs what scripts/wine.sh prepares: make wine")
	}
	launcher := filepath.Join(t.TempDir(), "packs-mcp")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' \"$@\"\n", wine, filepath.Join(programs, "packs-mcp.exe"))
	if err := os.WriteFile(launcher, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	w := served.New(t, launcher)
	w.Env = slices.DeleteFunc(w.Env, func(kv string) bool { return strings.HasPrefix(kv, "PACKS_MCP_HOME=") })
	w.Env = append(w.Env, "PACKS_MCP_HOME="+windows(w.Home), "SOME_API_KEY=canary")
	for _, name := range []string{"WINEPREFIX", "WINEARCH", "WINEDEBUG", "WINEDLLOVERRIDES"} {
		w.Env = append(w.Env, name+"="+os.Getenv(name))
	}
	w.Put("packs/greeter/SKILL.md", document("Greets people by their names."))
	w.Put("packs/greeter/tools.json", `{"tools": [{
		"name": "greet", "description": "Greets.",
		"inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
		"command": {"program": "./greeter.exe", "args": ["{{name}}", "the others"]}}]}`)
	program, err := os.ReadFile(filepath.Join(programs, "greeter.exe"))
	if err != nil {
		t.Fatal(err)
	}
	w.Put("packs/greeter/greeter.exe", string(program))
	return w
}

func document(description string) string {
	return "---\nname: greeter\ndescription: " + description + "\n---\nThe words of the document.\n"
}

// windows returns a path of this machine in Windows' form.
func windows(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }

// says runs a command that must end by itself with a status.
func says(t *testing.T, w *served.World, code int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), served.Patience)
	defer cancel()
	// Use files, since processes that Wine starts in addition would hold a pipe open.
	dir := t.TempDir()
	files := make([]*os.File, 2)
	for i := range files {
		var err error
		if files[i], err = os.Create(filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
		defer files[i].Close()
	}
	cmd := w.Command(ctx, args...)
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	err := cmd.Run()
	text := make([]string, len(files))
	for i, f := range files {
		printed, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		text[i] = strings.ReplaceAll(string(printed), "\r\n", "\n")
	}
	if status := cmd.ProcessState.ExitCode(); status != code {
		t.Fatalf("packs-mcp %q = %v, want status %d; it printed:\n%s%s", args, err, code, text[0], text[1])
	}
	return text[0]
}

func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// Commands that a person types.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	wants(t, "version", says(t, w, 0, "version"), "windows/amd64")
	wants(t, "doctor", says(t, w, 0, "doctor", "--packs", windows(w.Packs)),
		" on windows/amd64\n",
		"sandbox   level none; required is none\n",
		"partial  does not work: ", // Wine has no integrity levels
		"1 pack found, 1 attached", "An approved call can run here.")
	wants(t, "list", says(t, w, 0, "list", "--packs", windows(w.Packs)), "greeter", "Greets people by their names.")
	says(t, w, 0, "validate", windows(filepath.Join(w.Packs, "greeter")))
}

// doctor --attack works on Windows, and says that Wine confines nothing.
func TestAttack(t *testing.T) {
	w := newWorld(t)
	var got struct {
		OK     bool
		System string
		Levels []struct {
			Level string
			Bad   int
			Tries []struct{ Tried, Expected, Happened, Detail string }
		}
		Lacking []struct{ Level, Problem string }
		Absent  []string
	}
	out := says(t, w, 1, "doctor", "--attack", "--json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.OK || got.System != "windows/amd64" || len(got.Levels) != 1 || got.Levels[0].Level != "none" || got.Levels[0].Bad > 0 {
		t.Fatalf("doctor --attack = %s, want level none alone", out)
	}
	for _, try := range got.Levels[0].Tries {
		if try.Expected == "open" && try.Happened != "ok" {
			t.Errorf("unconfined, %q is %q (%s)", try.Tried, try.Happened, try.Detail)
		}
	}
	wants(t, "what has no meaning", strings.Join(got.Absent, "\n"), "mount", "setuid", "keyrings", "user namespace", "abstract")
}

// A client lists and opens packs, a person approves each call, a program runs in a
// workspace and leaves a file, and the client is notified of an edit.
func TestServe(t *testing.T) {
	w := newWorld(t)
	c := w.Stdio("once", "serve", "--packs", windows(w.Packs))
	call := func(tool string, args map[string]any, v any) {
		t.Helper()
		a, err := c.Call(t.Context(), "capability_packs_"+tool, args)
		if err == nil && a.Code != "" {
			err = fmt.Errorf("%s: %s", a.Code, a.Message)
		}
		if err == nil {
			err = a.Into(v)
		}
		if err != nil {
			t.Fatalf("%s %v = %v; the server logged:\n%s", tool, args, err, c.Log())
		}
	}
	var list struct {
		Packs []struct {
			PackID      string `json:"pack_id"`
			Description string
		}
	}
	call("list", nil, &list)
	if len(list.Packs) != 1 || list.Packs[0].PackID != "greeter" || list.Packs[0].Description != "Greets people by their names." {
		t.Fatalf("list = %+v, want the greeter", list)
	}
	greeter := map[string]any{"pack_id": "greeter"}
	var opened struct {
		EntryDoc struct{ Content string } `json:"entry_doc"`
	}
	call("open_docs", greeter, &opened)
	wants(t, "the document", opened.EntryDoc.Content, "The words of the document.")
	var enabled struct{ Tools []struct{ Tool string } }
	call("enable_tools", greeter, &enabled)
	if len(enabled.Tools) != 1 {
		t.Fatalf("enable_tools = %+v, want one tool", enabled)
	}
	var run struct {
		ExitCode  int `json:"exit_code"`
		Stdout    string
		Artifacts []struct{ Path string }
	}
	call("call_tool", map[string]any{"pack_id": "greeter", "tool": "greet", "arguments": map[string]any{"name": `Ann "the wise" O'Hara`}}, &run)
	if run.ExitCode != 0 || run.Stdout != "Hello, Ann \"the wise\" O'Hara and the others!\n" {
		t.Errorf("the run = %+v, want a greeting alone", run)
	}
	if len(run.Artifacts) != 1 || run.Artifacts[0].Path != "greeted.txt" {
		t.Errorf("the run left %+v, want greeted.txt", run.Artifacts)
	}

	w.Put("packs/greeter/SKILL.md", document("Greets people twice."))
	w.Until("the edit is heard", func() bool { return c.Heard("notifications/prompts/list_changed") > 0 })
	call("list", nil, &list)
	if len(list.Packs) != 1 || list.Packs[0].Description != "Greets people twice." {
		t.Errorf("after the edit, list = %+v", list)
	}
	c.End()

	wants(t, "audit verify", says(t, w, 0, "audit", "verify"), "ok: 9 entries")
	var events []audit.Event
	for line, err := range audit.Read(filepath.Join(w.Home, "audit.jsonl")) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, line.Entry.Event)
	}
	want := []audit.Event{
		audit.EventServerStart, audit.EventDecision, audit.EventDecision, audit.EventDecision, audit.EventDecision,
		audit.EventRunStart, audit.EventRunEnd, audit.EventDecision, audit.EventServerStop,
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events of the audit log (-want +got):\n%s", diff)
	}
}

// A call that the person denies runs nothing.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	c := w.Stdio("deny", "serve", "--packs", windows(w.Packs))
	a, err := c.Call(t.Context(), "capability_packs_open_docs", map[string]any{"pack_id": "greeter"})
	if err != nil || a.Code != "denied" {
		t.Errorf("open_docs = %s %s, %v, want denied", a.Code, a.Message, err)
	}
	c.End()
}

// The digest of a pack is the same as here, except that Windows does not record which
// files are executable.
func TestDigest(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		mode os.FileMode
		same bool
	}{{0o644, true}, {0o755, false}} {
		if err := os.Chmod(filepath.Join(w.Packs, "greeter", "greeter.exe"), tt.mode); err != nil {
			t.Fatal(err)
		}
		var shown struct{ Digest string }
		if err := json.Unmarshal([]byte(says(t, w, 0, "show", "greeter", "--json", "--packs", windows(w.Packs))), &shown); err != nil {
			t.Fatal(err)
		}
		dir, err := packfs.Open(filepath.Join(w.Packs, "greeter"))
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		tree, err := dir.Digest(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if same := shown.Digest == tree.Digest; same != tt.same {
			t.Errorf("mode %o: the digests are %s and %s; equal %v, want %v", tt.mode, shown.Digest, tree.Digest, same, tt.same)
		}
	}
}
