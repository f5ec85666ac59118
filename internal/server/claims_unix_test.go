//go:build unix

package server

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A run in the same workspace cannot change a file between the moment when the bytes
// that an answer is bound to are compared and the moment when the program reads them:
// the two runs do not overlap.
func TestBoundRunsAreAlone(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	w.answer = decide("chat")
	w.initialize()
	script := filepath.Join(w.srv.chats.All()[0].Workspaces.First().Dir, "r.sh")
	old := time.Now().Add(-time.Hour)
	if err := os.WriteFile(script, []byte("echo good\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(script, old, old); err != nil {
		t.Fatal(err)
	}
	bound := map[string]any{"pack_id": "triage", "command": "sh", "args": []string{"r.sh"}}
	if got := w.ok(execMethod, bound); got["stdout"] != "good\n" {
		t.Fatalf("the first run = %v", got)
	}
	call := func(id int, args map[string]any) {
		w.send(map[string]any{"id": id, "method": "tools/call", "params": map[string]any{"name": execMethod, "arguments": args}})
	}
	// No answer is bound to the file's time; it shows that the writer runs.
	call(1_000_001, map[string]any{"pack_id": "triage", "command": "sh", "args": []string{"-c", "touch r.sh; sleep 1; echo 'echo evil' > r.sh"}})
	for deadline := time.Now().Add(20 * time.Second); ; {
		w.request("ping", nil)
		if info, err := os.Stat(script); err == nil && info.ModTime().After(old) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the writer did not start")
		}
	}
	asked := len(w.asked)
	call(1_000_002, bound)
	var order []any
	for range 2 {
		m := w.receive()
		order = append(order, m["id"])
		if m["id"] == float64(1_000_002) && len(w.asked) == asked {
			if got, _ := result(t, m)["structuredContent"].(map[string]any); got["ok"] == true {
				t.Errorf("the bound run went on beside the writer: %v", got)
			}
		}
	}
	if order[0] != float64(1_000_001) {
		t.Errorf("the calls returned in the order %v, want the writer first", order)
	}
}
