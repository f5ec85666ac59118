package server

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
)

const ourToken = `tok"en\of/ours-0123456789`

// If a program prints a token of this server, in any spelling, the token is neither
// in its result nor in the log. A call with a token in it is not made, and nobody is
// asked about it.
func TestTokensAreTakenOut(t *testing.T) {
	needShell(t)
	w := newWorld(t, notes, func(s *setup) { s.server.Tokens = []string{ourToken} })
	w.answer = decide("once")
	w.initialize()
	w.enable("notes")
	file := filepath.Join(t.TempDir(), "packs.yaml")
	if err := os.WriteFile(file, []byte(ourToken), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"cat", "base64"} {
		got := w.ok("capability_packs_exec_best_effort", map[string]any{"pack_id": "notes", "command": command, "args": []string{file}})
		out, _ := got["stdout"].(string)
		if !strings.Contains(out, redact.Mark) || strings.Contains(out, ourToken) || strings.Contains(out, base64.StdEncoding.EncodeToString([]byte(ourToken))) {
			t.Errorf("%s printed %q", command, out)
		}
	}
	asked := len(w.asked)
	add := func(note string) map[string]any {
		return map[string]any{"pack_id": "notes", "tool": "add", "arguments": map[string]any{"note": note}}
	}
	w.fails("invalid_arguments", "capability_packs_call_tool", add("x"+ourToken+"y"))
	w.fails("invalid_arguments", "capability_packs_exec_best_effort", map[string]any{"pack_id": "notes", "command": "echo", "args": []string{ourToken}})
	w.fails("invalid_arguments", "capability_packs_list", map[string]any{"query": ourToken})
	var escaped strings.Builder
	for _, r := range ourToken {
		escaped.WriteString(`\u00` + string("0123456789abcdef"[r>>4]) + string("0123456789abcdef"[r&15]))
	}
	w.next++
	w.raw(`{"jsonrpc":"2.0","id":` + string(must(json.Marshal(w.next))) + `,"method":"tools/call","params":{"name":"notes__add","arguments":{"note":"` + escaped.String() + `"}}}`)
	if r := result(t, w.receive()); r["isError"] != true {
		t.Errorf("a call with an escaped token: %v", r)
	}
	if e := w.request("resources/read", map[string]any{"uri": ourToken})["error"]; e == nil {
		t.Error("a resource by a token's name is given")
	}
	withContext := map[string]any{"name": "notes__add", "arguments": map[string]any{"note": "a"}, "_meta": map[string]any{calls.ContextKey: map[string]any{"page": ourToken}}}
	if r := result(t, w.request("tools/call", withContext)); r["isError"] != true {
		t.Errorf("a call with a token in its context: %v", r)
	}
	if len(w.asked) != asked {
		t.Errorf("a person was asked %q", w.asked[asked:])
	}
	w.ok("capability_packs_call_tool", add("token"))
	log, err := os.ReadFile(w.audit)
	if err != nil {
		t.Fatal(err)
	}
	spelled, _ := json.Marshal(ourToken)
	for what, text := range map[string]string{"the audit log": string(log), "the log": w.log.String(), "a question": strings.Join(w.asked, "\n")} {
		if strings.Contains(text, ourToken) || strings.Contains(text, strings.Trim(string(spelled), `"`)) {
			t.Errorf("%s has the token", what)
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// A pack whose folder contains what only this program may read is not served in any
// way.
func TestPackWithTokensIsKept(t *testing.T) {
	var config string
	w := newWorld(t, triage, func(s *setup) {
		config = filepath.Join(s.packs.Roots[0].Dir, "triage", "docs", "packs.yaml")
		s.server.Private = []string{config}
	})
	if err := os.WriteFile(config, []byte(ourToken), 0o600); err != nil {
		t.Fatal(err)
	}
	w.answer = decide("once")
	w.initialize()
	for tool, args := range map[string]map[string]any{
		"capability_packs_open_docs":        {"pack_id": "triage"},
		"capability_packs_read_file":        {"pack_id": "triage", "path": "docs/packs.yaml"},
		"capability_packs_enable_tools":     {"pack_id": "triage"},
		"capability_packs_exec_best_effort": {"pack_id": "triage", "command": "./scripts/greet.sh"},
	} {
		w.fails("path_denied", tool, args)
	}
	for method, params := range map[string]map[string]any{
		"resources/read":           {"uri": "skill://triage/docs/packs.yaml"},
		"resources/directory/read": {"uri": "skill://triage/docs"},
		"resources/subscribe":      {"uri": "skill://triage/docs/packs.yaml"},
		"prompts/get":              {"name": "triage"},
		"skills/get":               {"uri": "skill://triage/SKILL.md"},
	} {
		if reply := w.request(method, params); reply["error"] == nil {
			t.Errorf("%s = %v, want an error", method, reply)
		}
	}
	if got := objects(result(t, w.request("skills/list", nil))["skills"]); len(got) != 0 {
		t.Errorf("skills/list = %v, want none", got)
	}
	if len(w.asked) != 0 {
		t.Errorf("a person was asked %q", w.asked)
	}
}
