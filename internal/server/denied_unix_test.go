//go:build unix

package server

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Without private copies, nothing of a pack with denied entries runs: no digest
// covers what a program reads from them. A FIFO is such an entry; somebody else
// decides what comes out of it.
func TestDeniedWithoutCopies(t *testing.T) {
	w := newWorld(t, pack("pipes", "Has a pipe.")+`-- pipes/tools.json --
{"tools": [
 {"name": "needs", "inputSchema": {"type": "object"}, "command": {"program": "cat", "args": ["pipe"], "cwd": "pack_root"}},
 {"name": "free", "inputSchema": {"type": "object"}, "command": ["true"]}
]}
`)
	w.answer = decide("once")
	w.initialize()
	w.enable("pipes")
	w.ok("capability_packs_call_tool", map[string]any{"pack_id": "pipes", "tool": "free"})
	if err := syscall.Mkfifo(filepath.Join(w.root, "pipes", "pipe"), 0o644); err != nil {
		t.Skipf("fifo: %v", err)
	}
	e := w.fails("denied", "capability_packs_call_tool", map[string]any{"pack_id": "pipes", "tool": "free"})
	if message, _ := e["message"].(string); !strings.Contains(message, "no private copies") {
		t.Errorf("the run of a tool beside a FIFO = %v, want it withheld for lack of private copies", e)
	}
	asked := len(w.asked)
	w.fails("path_denied", "capability_packs_call_tool", map[string]any{"pack_id": "pipes", "tool": "needs"})
	if len(w.asked) != asked {
		t.Error("the person was asked about a call that cannot work")
	}
}
