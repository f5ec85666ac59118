//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// lists returns whether ada's chat has the tool of the pack notes in its list.
func (r *replica) lists() bool {
	r.t.Helper()
	text, _ := r.request(adasToken, "tools/list", "", map[string]any{}, map[string]any{})
	if !strings.Contains(text, "capability_packs_call_tool") {
		r.t.Fatalf("tools/list: %s", text)
	}
	return strings.Contains(text, `"notes__go"`)
}

// Whichever server a client reaches, its chat has the same tools enabled and the same packs
// attached, even after one server was killed.
func TestReplicasShareChats(t *testing.T) {
	t.Cleanup(storetest.End)
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		packs := t.TempDir()
		plantPack(t, packs, "notes", "echo ran as $PACKS_RUN_ID\n")
		proxy := e.Proxy(t)
		all := startReplicas(t, proxy.URL(), packs, "rules: [{allow: {kind: [enable, run, attach]}}]\n", 3)
		a, b, c := all[0], all[1], all[2]
		enable := func(at *replica, args map[string]any) string {
			t.Helper()
			args["pack_id"] = "notes"
			text, _ := at.call(adasToken, "capability_packs_enable_tools", args)
			return text
		}
		listed := func(when string, want bool, all ...*replica) {
			t.Helper()
			for i, r := range all {
				if got := r.lists(); got != want {
					t.Errorf("%s, the list of server %d has the tool: %v\n%s", when, i, got, r.said())
				}
			}
		}
		attach := func(at *replica, prompt string) {
			t.Helper()
			text, _ := at.request(adasToken, "prompts/get", prompt, map[string]any{"arguments": map[string]any{"pack_id": "notes"}}, map[string]any{})
			if !strings.Contains(text, "tached") {
				t.Fatalf("%s: %s", prompt, text)
			}
		}

		listed("at first", false, a, b, c)
		if text := enable(a, map[string]any{}); !strings.Contains(text, "notes__go") {
			t.Fatalf("enabling: %s", text)
		}
		listed("after it was enabled at the first", true, b, c, a)
		if text, _ := b.call(adasToken, "notes__go", map[string]any{}); !strings.Contains(text, "ran as run-") {
			t.Errorf("the call at another server: %s", text)
		}
		enable(b, map[string]any{"tools": []string{}})
		listed("after it was disabled at the second", false, a, b, c)
		enable(c, map[string]any{})

		attach(a, "detach")
		listed("after a person detached the pack at the first", false, c, b, a)
		if text, _ := c.call(adasToken, "notes__go", map[string]any{}); strings.Contains(text, "ran as") {
			t.Errorf("a call of a tool whose pack was detached elsewhere: %s", text)
		}
		attach(b, "attach")
		listed("after it was attached again at the second", true, a, c)

		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		listed("when the server where it was enabled was killed", true, a, b)

		proxy.Cut()
		if text := enable(a, map[string]any{"tools": []string{}}); !strings.Contains(text, "store_unavailable") {
			t.Errorf("disabling without the store: %s", text)
		}
		if text, _ := b.call(adasToken, "notes__go", map[string]any{}); !strings.Contains(text, "store_unavailable") {
			t.Errorf("a call without the store: %s", text)
		}
		proxy.Mend()
	})
}
