//go:build unix

package approvals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// helper is a pack with two tools that only read, and one that writes to the
// project.
const helper = `
-- helper/SKILL.md --
---
name: helper
description: Help.
---
# Helper

Read docs/a.md and docs/b.md.
-- helper/docs/a.md --
A.
-- helper/docs/b.md --
B.
-- helper/tools.json --
{"tools": [
  {"name": "look", "description": "Look.", "policy": {"read_only": true},
   "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}},
   "command": {"program": "./scripts/say.sh", "args": ["looked", "{{at}}"]}},
  {"name": "count", "description": "Count.", "policy": {"read_only": true}, "command": {"program": "./scripts/say.sh", "args": ["counted"]}},
  {"name": "note", "description": "Write it down.", "command": {"program": "./scripts/note.sh", "cwd": "project"}},
  {"name": "ask", "description": "Ask.", "policy": {"read_only": true, "confirm_before_run": true}, "command": {"program": "./scripts/say.sh", "args": ["asked"]}},
  {"name": "fetch", "description": "Fetch.", "policy": {"read_only": true, "network": "loopback"}, "command": {"program": "./scripts/say.sh", "args": ["fetched"]}}
]}
-- helper/guess.tool.json --
{"name": "guess", "description": "A format's default.", "command": {"program": "./scripts/say.sh", "args": ["guessed"]}}
-- helper/scripts/say.sh --
#!/bin/sh
echo "said $*"
-- helper/scripts/note.sh --
#!/bin/sh
echo noted >>notes.txt
`

// newHelped makes a world with that pack, a project, and this policy. The policy balanced
// allows runs unasked only at level full, so without that the test is skipped.
func newHelped(t *testing.T, policy string) (w *world, flags []string) {
	t.Helper()
	w = newWorld(t, helper, "PACKS_MCP_APPROVAL_POLICY="+policy)
	w.put("project/.git/HEAD", "ref: refs/heads/main\n")
	if policy == "balanced" {
		if out, _, _ := w.command("doctor", "--json"); !strings.Contains(out, `"level": "full"`) {
			t.Skip("the sandbox has no level full on this machine, and the policy balanced needs it")
		}
	}
	return w, []string{"--project", filepath.Join(w.root, "project")}
}

func helped(tool string, args object) (string, object) {
	return callTool, object{"pack_id": "helper", "tool": tool, "arguments": args}
}

// task opens, reads two files, enables, runs two tools that only read five times,
// and one that writes.
func (c *client) task() {
	c.w.t.Helper()
	c.tool(openDocs, object{"pack_id": "helper"}).want("", "# Helper")
	c.tool(readFile, object{"pack_id": "helper", "path": "docs/a.md"}).want("", "A.")
	c.tool(readFile, object{"pack_id": "helper", "path": "docs/b.md"}).want("", "B.")
	c.tool(enable, object{"pack_id": "helper"}).want("")
	for i := range 3 {
		c.tool(helped("look", object{"at": fmt.Sprint(i)})).want("", fmt.Sprint("said looked ", i))
	}
	for range 2 {
		c.tool(helped("count", object{})).want("", "said counted")
	}
	c.tool(helped("note", object{})).want("")
	if notes, err := os.ReadFile(filepath.Join(c.w.root, "project", "notes.txt")); err != nil || string(notes) != "noted\n" {
		c.w.t.Errorf("the notes are %q (%v)", notes, err)
	}
}

// The number of questions for the same task.
func TestQuestionsOfATask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy, answer string
		want           int
	}{
		{"every-call", "once", 10},
		{"every-call", "chat", 4},
		{"balanced", "chat", 2},
		{"balanced", "once", 10},
		{"first-run", "once", 3},
	} {
		t.Run(c.policy+" "+c.answer, func(t *testing.T) {
			t.Parallel()
			w, flags := newHelped(t, c.policy)
			client := w.connect(choose(c.answer), flags...)
			client.task()
			if got := client.questions(); len(got) != c.want {
				t.Errorf("%d questions, want %d:\n%s", len(got), c.want, strings.Join(got, "\n\n"))
			}
		})
	}
}

// Runs that the policy balanced allows are logged as decided by the policy, with the answer
// that it relies on. Any difference causes a question.
func TestBalanced(t *testing.T) {
	t.Parallel()
	w, flags := newHelped(t, "balanced")
	c := w.connect(choose("chat"), flags...)
	asks := func(n int, does string) (questions []string) { // since the last call of asks
		t.Helper()
		if questions = c.questions(); len(questions) != n {
			t.Fatalf("%s: %d questions, want %d:\n%s", does, len(questions), n, strings.Join(questions, "\n\n"))
		}
		return questions
	}
	c.tool(readFile, object{"pack_id": "helper", "path": "docs/a.md"}).want("")
	asks(1, "reading, which comes first")
	c.tool(openDocs, object{"pack_id": "helper"}).want("")
	c.tool(enable, object{"pack_id": "helper"}).want("")
	c.tool(helped("look", object{"at": "1"})).want("", "said looked 1")
	asks(0, "opening, enabling and a run that only reads")
	var use string
	for _, e := range w.entries() {
		switch {
		case e.Kind == "read" && e.Decision == "chat":
			use = e.Grant
		case e.Kind == "run" && e.Decision != "" && (e.Channel != "policy" || e.Grant == "" || e.Grant != use || e.Run == ""):
			t.Errorf("the line of the run = %+v, want the policy and the grant %q", e, use)
		}
	}
	c.answers(choose("once"))
	for _, call := range []struct {
		says string
		tool string
		args object
	}{
		{"a format's default", "guess", object{}},
		{"a tool that demands it", "ask", object{}},
		{"a network", "fetch", object{}},
		{"arguments that hide something", "look", object{"at": "a\u202eb"}},
		{"a tool that may write", "note", object{}},
	} {
		c.tool(helped(call.tool, call.args)).want("")
		asks(1, call.says)
	}
	c.tool(execTool, object{"pack_id": "helper", "command": "true"}).want("")
	asks(1, "a command of the model's own")

	// Another chat inherits none of it.
	other := w.connect(choose("once"), flags...)
	other.tool(enable, object{"pack_id": "helper"}).want("")
	other.tool(helped("count", object{})).want("")
	if got := other.questions(); len(got) != 2 {
		t.Errorf("%d questions in another chat, want 2", len(got))
	}

	// A changed pack causes a question, and restoring its bytes does not restore the answer.
	was := w.read("packs/helper/scripts/say.sh")
	w.put("packs/helper/scripts/say.sh", strings.Replace(was, "said", "shouted", 1))
	c.tool(helped("count", object{})).want("", "shouted counted")
	if last := asks(1, "a changed pack")[0]; !says(last, "CHANGED") || !says(last, "scripts/say.sh changed") {
		t.Errorf("the question about the changed pack is %q", last)
	}
	w.put("packs/helper/scripts/say.sh", was)
	c.tool(helped("count", object{})).want("", "said counted")
	asks(1, "the old bytes")
}

// The policy allows nothing unasked if the user's configuration opens something, if a rule
// asks, or if the pack is not trusted.
func TestBalancedWithOpenings(t *testing.T) {
	t.Parallel()
	for says, config := range map[string]string{
		"a granted variable": "sandbox: {grants: [{pack: helper, env: [HELPER_TOKEN]}]}\n",
		"a granted folder":   "sandbox: {grants: [{pack: helper, read: [ROOT/data]}]}\n",
		"the home":           "sandbox: {grants: [{pack: helper, home: true}]}\n",
		"a rule that asks":   "rules: [{ask: {tool: helper/count}}]\n",
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			w, flags := newHelped(t, "balanced")
			w.put("data/x", "x")
			w.put("home/config.yaml", strings.ReplaceAll(config, "ROOT", w.root))
			c := w.connect(choose("once"), flags...)
			c.answers(choose("chat"))
			c.tool(enable, object{"pack_id": "helper"}).want("")
			c.answers(choose("once"))
			c.tool(helped("count", object{})).want("", "said counted")
			if got := c.questions(); len(got) != 2 {
				t.Errorf("%d questions, want 2", len(got))
			}
		})
	}
	t.Run("no trust", func(t *testing.T) {
		t.Parallel()
		w, flags := newHelped(t, "balanced")
		w.put("project/.packs/theirs/SKILL.md", "---\nname: theirs\ndescription: Theirs.\n---\n# Theirs\n")
		w.put("project/.packs/theirs/tools.json", `{"tools": [{"name": "look", "description": "Look.", "policy": {"read_only": true}, "command": {"program": "echo", "args": ["hello"]}}]}`)
		c := w.connect(choose("once"), append(flags, "--attach", "theirs")...)
		for range 2 {
			c.tool(openDocs, object{"pack_id": "theirs"}).want("", "# Theirs")
		}
		c.tool(enable, object{"pack_id": "theirs"}).want("")
		c.tool(callTool, object{"pack_id": "theirs", "tool": "look", "arguments": object{}}).want("", "hello")
		if got := c.questions(); len(got) != 4 {
			t.Errorf("%d questions, want 4", len(got))
		}
		c.answers(choose("chat"))
		c.tool(openDocs, object{"pack_id": "theirs"}).want("denied", "none of the choices")
	})
}

// Answers for a chat are listed with the chat, client and server. They can be revoked, which
// is logged and takes effect at the next call.
func TestChatGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c, other := w.connect(choose("chat")), w.connect(choose("always"))
	c.tool(openDocs, object{"pack_id": "triage"}).want("")
	c.enable("triage")
	c.tool(greet("Ada")).want("")
	other.enable("triage")
	other.tool(greet("Ada")).want("")
	grants := func() (all []struct {
		ID, Kind, Covers string
		Chat             *struct {
			ID, Client, Server string
			PID                int
		}
	}) {
		t.Helper()
		var out struct{ Grants any }
		out.Grants = &all
		decode(t, w.ok("approvals", "grants", "--json"), &out)
		return all
	}
	var inChat, everywhere []string
	ids := make(map[string]string)
	for _, g := range grants() {
		if g.Chat == nil {
			everywhere = append(everywhere, g.Kind)
			continue
		}
		inChat = append(inChat, g.Kind)
		ids[g.Kind] = g.ID
		if g.Chat.PID != c.cmd.Process.Pid || g.Chat.Client != "raw 1" || g.Chat.ID == "" || g.Chat.Server == "" || !strings.Contains(g.Covers, "until") {
			t.Errorf("a grant of a chat = %+v", g)
		}
	}
	if !slices.Equal(everywhere, []string{"enable", "run"}) || !slices.Equal(inChat, []string{"use", "run"}) {
		t.Fatalf("grants for every chat %q, and for one %q", everywhere, inChat)
	}
	if text := w.ok("approvals", "grants"); !strings.Contains(text, fmt.Sprintf(`of a client that calls itself "raw 1" (pid %d)`, c.cmd.Process.Pid)) {
		t.Errorf("the list does not say whose chat it is:\n%s", text)
	}
	if out := w.ok("approvals", "revoke", ids["run"]); !strings.Contains(out, "(run greet of triage, in a chat)") {
		t.Errorf("revoke says %q", out)
	}
	c.answers(choose("deny"))
	other.answers(choose("deny"))
	// Revoked for one chat; an "always" answer still covers this chat too.
	c.tool(greet("Ada")).want("")
	w.ok("approvals", "revoke", "--pack", "triage")
	c.tool(greet("Ada")).want("denied", "chose to deny")
	c.tool(openDocs, object{"pack_id": "triage"}).want("denied", "chose to deny")
	other.tool(greet("Ada")).want("denied", "chose to deny")
	if left := grants(); len(left) != 0 {
		t.Errorf("grants %+v are left", left)
	}
	w.fails(1, "no grant", "approvals", "revoke", ids["run"])
	revoked := 0
	for _, e := range w.entries() {
		if e.Event == "revoke" {
			revoked++
			if strings.Contains(e.Reason, "for a chat") && (e.Chat == "" || e.Channel != "terminal" || e.Grant == "" || e.Client != "raw 1") {
				t.Errorf("a line about a grant that was taken back = %+v", e)
			}
		}
	}
	if revoked != 4 {
		t.Errorf("the log has %d grants taken back, want 4", revoked)
	}
	// When the chat ends, its grants end.
	c.answers(choose("chat"))
	c.tool(openDocs, object{"pack_id": "triage"}).want("")
	if n := len(grants()); n != 1 {
		t.Errorf("%d grants, want one", n)
	}
	c.close()
	if n := len(grants()); n != 0 {
		t.Errorf("%d grants after the chat, want none", n)
	}
}
