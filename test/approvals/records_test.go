//go:build unix

package approvals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// Every call that is refused before anyone is asked has a log entry with the code that the
// client got, and why.
func TestRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(choose("chat"))
	run := func(tool string, args object) (string, object) {
		return callTool, object{"pack_id": "triage", "tool": tool, "arguments": args}
	}
	type call struct {
		name string
		args object
		code string
		pack string
		word string // part of the reason
	}
	var want []call
	refused := func(code, pack, word, name string, args object) {
		t.Helper()
		c.tool(name, args).want(code)
		want = append(want, call{name, args, code, pack, word})
	}
	refused("not_found", "missing", `"missing"`, openDocs, object{"pack_id": "missing"})
	refused("path_denied", "triage", "../../etc/passwd", readFile, object{"pack_id": "triage", "path": "../../etc/passwd"})
	refused("not_found", "triage", "nothing.md", readFile, object{"pack_id": "triage", "path": "nothing.md"})
	refused("invalid_arguments", "triage", `"x"`, openDocs, object{"pack_id": "triage", "x": 1})
	name, args := run("greet", object{"who": "x"})
	refused("not_enabled", "triage", "greet", name, args)
	name, args = run("none", object{})
	refused("not_found", "triage", "none", name, args)
	c.enable("triage")
	name, args = run("greet", object{"who": 1})
	refused("invalid_arguments", "triage", "/who", name, args)
	refused("program_not_found", "triage", "no-such-program", execTool, object{"pack_id": "triage", "command": "no-such-program", "args": []any{}})
	c.begin("tools/call", object{"name": "no_such_tool", "arguments": object{}}).wait()
	want = append(want, call{"tools/call", nil, "not_found", "", "no_such_tool"})
	c.begin("resources/read", object{"uri": "pack://none/x.md"}).wait()
	want = append(want, call{"resources/read", nil, "not_found", "", "pack://none/x.md"})
	c.begin("prompts/get", object{"name": "no-such-prompt"}).wait()
	want = append(want, call{"prompts/get", nil, "not_found", "", "no-such-prompt"})

	var got []audit.Entry
	for _, e := range w.entries() {
		if e.Event == audit.EventRefusal {
			got = append(got, e)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("the log has %d refusals, want %d: %+v", len(got), len(want), got)
	}
	for i, e := range got {
		m := want[i]
		if e.Code != m.code || e.Pack != m.pack || e.Tool != m.name || !strings.Contains(e.Reason, m.word) || e.Chat == "" || e.Call == "" || e.Client != "raw 1" || !e.Args.IsZero() || e.Decision != "" {
			t.Errorf("line %d is %+v, want %+v", i, e, m)
		}
	}
	if out := w.ok("audit", "show", "--event", "refusal"); !strings.Contains(out, "path_denied") || !strings.Contains(out, "../../etc/passwd") {
		t.Errorf("audit show --event refusal printed\n%s", out)
	}
}

// A client cannot grow the log with refused calls; other clients' calls are still decided and
// recorded.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(choose("chat"))
	const calls = 2000
	for i := range calls {
		c.tool(readFile, object{"pack_id": "triage", "path": fmt.Sprintf("../%d", i)}).want("path_denied")
	}
	c.tool(openDocs, object{"pack_id": "triage"}).want("")
	c.close()
	lines, counted := 0, 0
	for _, e := range w.entries() {
		switch {
		case e.Event != audit.EventRefusal:
		case e.Count == 0:
			lines++
		default:
			counted += e.Count
			if !strings.Contains(e.Reason, "path_denied") {
				t.Errorf("the line that counts says %q", e.Reason)
			}
		}
	}
	if lines != 100 || counted != calls-100 {
		t.Errorf("the log has %d lines and %d counted refusals, want 100 and %d", lines, counted, calls-100)
	}
	if got := strings.Join(w.decisions(), ","); got != "open chat elicitation" {
		t.Errorf("the log has the decisions %s", got)
	}
}

// A value that looks like a token is in no log entry, wherever it was; results for the model
// are unchanged.
func TestTokensAreNotLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(choose("once"))
	secret := "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
	all := []string{"ghp_" + secret, "sk-ant-" + "api03-" + secret, "AKIA" + "IOSFODNN7EXAMPLE", "xox" + "b-2345678901-" + secret, "glpat-" + secret[:20], "npm_" + secret}
	c.enable("triage")
	for i, token := range all {
		name, args := greet(token)
		c.tool(name, args).want("", "hello "+token)
		c.tool(execTool, object{"pack_id": "triage", "command": "echo", "args": []any{"--harmless=" + token}}).want("", token)
		c.tool(readFile, object{"pack_id": "triage", "path": "../" + token}).want("path_denied", token)
		c.tool(openDocs, object{"pack_id": token}).want("not_found", token)
		c.begin("tools/call", object{"name": "x" + fmt.Sprint(i), "arguments": object{"harmless": token}}).wait()
	}
	sha := "e9d4f02b5c917314a8e1c7d07e88b3053d0aa901"
	c.tool(execTool, object{"pack_id": "triage", "command": "echo", "args": []any{sha, "sk-learn"}}).want("", sha)
	log, err := os.ReadFile(w.log())
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range append(all, secret) {
		if strings.Contains(string(log), token) {
			t.Errorf("the log has %q", token)
		}
	}
	if !strings.Contains(string(log), sha) || !strings.Contains(string(log), "sk-learn") {
		t.Error("the log lacks the digest, or a word that is no token")
	}
}

// A client cannot grow the log with calls that a rule denies, however long they are.
func TestDenialsByARuleAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	w.put("home/config.yaml", "rules:\n  - deny: {kind: exec}\n")
	c := w.connect(choose("chat"), "--config", filepath.Join(w.home, "config.yaml"))
	c.enable("triage")
	const calls = 300
	long := strings.Repeat("x", 60_000)
	for range calls {
		c.tool(execTool, object{"pack_id": "triage", "command": "echo", "args": []any{long}}).want("denied")
	}
	c.close()
	lines, counted, args := 0, 0, 0
	for _, e := range w.entries() {
		switch {
		case e.Count > 0:
			counted += e.Count
		case e.Decision == "deny":
			lines++
			args += len(e.Args.String())
			if e.ArgsDigest == "" || e.Rule == "" {
				t.Errorf("the log has %+v", e)
			}
		}
	}
	if lines != 100 || counted != calls-100 || args == 0 {
		t.Errorf("the log has %d denials with %d bytes of arguments, and counts %d", lines, args, counted)
	}
	if info, err := os.Stat(w.log()); err != nil || info.Size() > 1<<20 {
		t.Errorf("the log has %v, %v", info.Size(), err)
	}
}
