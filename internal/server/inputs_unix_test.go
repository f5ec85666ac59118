//go:build unix

package server

import (
	"os"
	"path/filepath"
	"testing"
)

// "Always" for a command covers the script that it names, with its current bytes.
func TestChangedScriptAsksAgain(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage, func(s *setup) { s.gate.Grants = new(kept) })
	w.answer = decide("always")
	w.initialize()
	script := filepath.Join(w.srv.chats.All()[0].Workspaces.First().Dir, "r.sh")
	run := func(text string) int {
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := len(w.asked)
		w.ok("capability_packs_exec_best_effort", map[string]any{"pack_id": "triage", "command": "sh", "args": []string{"r.sh"}})
		return len(w.asked) - before
	}
	if first, again, changed := run("echo good"), run("echo good"), run("echo evil"); first != 1 || again != 0 || changed != 1 {
		t.Errorf("%d, %d and %d questions, want one, none, and one after the script changed", first, again, changed)
	}
	if q := w.asked[len(w.asked)-1]; !says(q, "CHANGED") || !says(q, "a file named in the arguments changed") {
		t.Errorf("the question is\n%s\nwant that the file changed", q)
	}
}
