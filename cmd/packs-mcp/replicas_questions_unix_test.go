//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// startReplicas starts servers that share one store and one folder of workspaces, since a
// run's answer names it. more is added to the configuration.
func startReplicas(t *testing.T, url, packs, more string, n int) []*replica {
	t.Helper()
	data := t.TempDir()
	all := make([]*replica, n)
	for i := range all {
		dir, env := home(t)
		env = append(env, "PACKS_MCP_HOME=", "XDG_DATA_HOME="+data, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=",
			"PACKS_MCP_STORE_KEY="+strings.Repeat("5e", 32))
		r := &replica{env: env, config: filepath.Join(dir, "config.yaml")}
		write(t, r.config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nstore: {url: %q}\nhttp:\n  tokens: [{name: ada, token: %s}]\n%s", packs, url, adasToken, more))
		r.team = startTeam(t, dir, env, r.config)
		all[i] = r
	}
	return all
}

// run calls the tool of the pack notes as a client that cannot ask. It returns the code of
// the pending question, and the text of the reply.
func (r *replica) run() (code, text string) {
	r.t.Helper()
	text, _ = r.call(adasToken, "capability_packs_call_tool", map[string]any{"pack_id": "notes", "tool": "go", "arguments": map[string]any{}})
	return regexp.MustCompile(`[2-9A-Z]{4}-[2-9A-Z]{4}`).FindString(text), text
}

// A question of one server can be answered at another, by the client with its state or by a
// person in a terminal, and the call then continues at a third. A server that ends or is
// killed takes no question or answer with it.
func TestReplicasShareQuestions(t *testing.T) {
	t.Cleanup(storetest.End)
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		packs := t.TempDir()
		plantPack(t, packs, "notes", "echo ran as $PACKS_RUN_ID\n")
		all := startReplicas(t, e.URL(), packs, "approval: {wait: 1s}\nrules: [{allow: {kind: [enable]}}]\n", 3)
		a, b, c := all[0], all[1], all[2]
		tokens := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(tokens, []byte(adasToken+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}

		form := map[string]any{"elicitation": map[string]any{}}
		params := map[string]any{"arguments": map[string]any{"pack_id": "notes"}}
		text, _ := a.send(adasToken, "capability_packs_open_docs", params, form)
		state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(text)
		if state == nil {
			t.Fatalf("the question: %s", text)
		}
		params["requestState"] = state[1]
		params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": "once"}}}
		if text, content := b.send(adasToken, "capability_packs_open_docs", params, form); content == nil || content["error"] != nil {
			t.Fatalf("the answer at another server: %s", text)
		}
		if text, _ := c.send(adasToken, "capability_packs_open_docs", params, form); !strings.Contains(text, "used before") {
			t.Errorf("the same answer at a third: %s", text)
		}

		answers := func(at *replica, code string) {
			t.Helper()
			if out, err := at.command("approvals", "approve", code, "--yes", "--server", strings.TrimSuffix(at.url, "/mcp"), "--token-file", tokens); err != nil {
				t.Fatalf("approve = %s, %v", out, err)
			}
		}
		if text, content := a.call(adasToken, "capability_packs_enable_tools", map[string]any{"pack_id": "notes"}); content["enabled"] != true {
			t.Fatalf("enabling: %s", text) // applies to all servers
		}
		code, text := a.run()
		if code == "" {
			t.Fatalf("the call leaves no question: %s", text)
		}
		answers(b, code)
		if _, text := c.run(); !strings.Contains(text, "ran as run-") {
			t.Fatalf("the call at a third server: %s\n%s", text, c.said())
		}
		if again, text := a.run(); again == "" || again == code || strings.Contains(text, "ran as") {
			t.Errorf("the call again: %s", text)
		} else {
			code = again
		}
		a.stop() // as in a rolling restart
		answers(c, code)
		if _, text := b.run(); !strings.Contains(text, "ran as run-") {
			t.Errorf("the call, when the server that asked had ended: %s", text)
		}
		if code, text = b.run(); code == "" {
			t.Fatalf("the call again: %s", text)
		}
		answers(b, code)
		if err := b.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, text := c.run(); !strings.Contains(text, "ran as run-") {
			t.Errorf("the call, when the server of the answer was killed: %s", text)
		}
	})
}
