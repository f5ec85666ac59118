//go:build unix

package server

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A run in the same workspace cannot change a file between the look at what an
// answer is bound to and the program that reads it: the two runs do not overlap.
func TestBoundRunsAreAlone(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	w.answer = decide("chat")
	w.initialize()
	script := filepath.Join(w.srv.everyChat()[0].dir, "r.sh")
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
	// The time of a file is bound to nothing: it says that the writer runs.
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

// What a run changes in a layer is applied when it ends, so a run without a turn there
// that reads it is kept apart from it. Two that take turns wait for their turn.
func TestClaimsOfLayers(t *testing.T) {
	own := claimOf(new(gate.Permit), &gate.Run{Policy: sandbox.Policy{Layers: []sandbox.Layer{
		{Folder: "/none/p", Kind: sandbox.LayerOverlay}, {Folder: "/none/r", Kind: sandbox.LayerReadOnly},
	}}})
	for _, c := range []struct {
		other claim
		want  bool
	}{
		{claim{bound: []string{"/none/p/r.sh"}}, true},
		{claim{bound: []string{"/none/r/r.sh"}}, false},
		{claim{bound: []string{"/none/p/r.sh"}, layers: []string{"/none/p"}}, false},
		{claim{bound: []string{"/none/p/sub/r.sh"}, layers: []string{"/none/p/sub"}}, true},
		{claim{layers: []string{"/none/p"}, writes: []string{"/none/p"}}, false},
	} {
		if got := own.conflicts(&c.other); got != c.want || c.other.conflicts(own) != c.want {
			t.Errorf("%v and %v conflict: %t, want %t", own, c.other, got, c.want)
		}
	}
}

// Claims wait for those before them that they conflict with, and for no others.
func TestClaims(t *testing.T) {
	var c claims
	ctx := t.Context()
	writer := &claim{writes: []string{"/w"}}
	free, err := c.take(ctx, writer)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []*claim{{writes: []string{"/w"}}, {writes: []string{"/v"}, bound: []string{"/v", "/x"}}, {bound: []string{"/www"}}} {
		done, err := c.take(ctx, other)
		if err != nil {
			t.Fatalf("take(%v) = %v", other, err)
		}
		done()
	}
	for _, other := range []*claim{{bound: []string{"/w/f"}}, {bound: []string{"/"}}, {writes: []string{"/w/sub"}, bound: []string{"/w"}}} {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if _, err := c.take(short, other); err == nil {
			t.Errorf("take(%v) did not wait", other)
		}
		cancel()
	}
	second := make(chan func())
	go func() {
		done, err := c.take(ctx, &claim{writes: []string{"/w"}, bound: []string{"/w"}})
		if err != nil {
			t.Error(err)
		}
		second <- done
	}()
	select {
	case <-second:
		t.Fatal("the bound one did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	free()
	(<-second)()
	if len(c.all) != 0 {
		t.Errorf("%d claims are left", len(c.all))
	}
}
