package server

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A file that cannot be digested is denied, but nothing else is: the pack opens, and
// only the tool that needs the file stays disabled.
func TestDeniedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a sparse file")
	}
	w := newWorld(t, pack("part", "Has a huge file.")+`-- part/tools.json --
{"tools": [
 {"name": "needs", "inputSchema": {"type": "object"}, "command": {"program": "cat", "args": ["--x=data.bin"], "cwd": "pack_root"}},
 {"name": "program", "inputSchema": {"type": "object"}, "command": ["./data.bin"]},
 {"name": "named", "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}}, "command": {"program": "cat", "args": ["{{file}}"], "cwd": "pack_root"}},
 {"name": "free", "inputSchema": {"type": "object"}, "command": ["true"]}
]}
-- part/small.txt --
small
`)
	big := filepath.Join(w.root, "part", "data.bin")
	if err := os.WriteFile(big, []byte("secret"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 5<<30); err != nil {
		t.Skipf("sparse files: %v", err)
	}
	w.put("part/odd\x07name", "odd", 0o644)
	if err := os.Symlink("data.bin", filepath.Join(w.root, "part", "link")); err != nil {
		t.Skip(err)
	}
	w.answer = decide("once")
	w.initialize()
	w.ok("capability_packs_open_docs", map[string]any{"pack_id": "part"})
	if got := w.ok("capability_packs_read_file", map[string]any{"pack_id": "part", "path": "small.txt"}); got["content"] != "small\n" {
		t.Errorf("small.txt = %v", got)
	}
	for _, path := range []string{"data.bin", "link"} {
		e := w.fails("too_large", "capability_packs_read_file", map[string]any{"pack_id": "part", "path": path, "length": 6})
		if hint, _ := e["hint"].(string); !strings.Contains(hint, "limits.pack_size") {
			t.Errorf("read_file %s: the hint is %q, want the key of the limit", path, hint)
		}
	}
	w.fails("path_denied", "capability_packs_read_file", map[string]any{"pack_id": "part", "path": "odd\x07name"})
	got := w.enable("part")
	if tools := names(got, "tool"); !slices.Equal(tools, []string{"named", "free"}) {
		t.Errorf("enabled = %q, want those that do not need the file", tools)
	}
	if d := objects(got["not_executable"]); len(d) != 2 || !strings.Contains(d[0]["reason"].(string), "data.bin") {
		t.Errorf("not_executable = %v, want needs and program, and why", d)
	}
	w.fails("not_executable", "capability_packs_enable_tools", map[string]any{"pack_id": "part", "tools": []string{"needs"}})
	asked := len(w.asked)
	w.fails("too_large", "capability_packs_call_tool", map[string]any{"pack_id": "part", "tool": "named", "arguments": map[string]any{"file": "data.bin"}})
	w.fails("too_large", "capability_packs_exec_best_effort", map[string]any{"pack_id": "part", "command": "cat", "args": []string{"link"}, "cwd_policy": "pack_root"})
	if len(w.asked) != asked {
		t.Errorf("the person was asked about a call that cannot work: %q", w.asked[asked:])
	}
	// Once the file can be used, the pack has another digest.
	w.answer = decide("chat")
	w.ok("capability_packs_read_file", map[string]any{"pack_id": "part", "path": "small.txt"})
	asked = len(w.asked)
	if err := os.Truncate(big, 6); err != nil {
		t.Fatal(err)
	}
	w.ok("capability_packs_read_file", map[string]any{"pack_id": "part", "path": "data.bin"})
	if len(w.asked) != asked+1 {
		t.Errorf("the person was asked %d times after the file became readable, want once", len(w.asked)-asked)
	}
}
