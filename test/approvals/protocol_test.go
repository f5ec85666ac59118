//go:build unix

package approvals_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// clientOnly makes the client the only channel.
const clientOnly = "PACKS_MCP_APPROVAL_CHANNELS=elicitation"

// ask makes a call of 2026-07-28 that must ask, and returns the state of the question.
func (c *client) ask(name string, args object) (state string) {
	c.w.t.Helper()
	result := c.request("tools/call", object{"name": name, "arguments": args})
	state, _ = result["requestState"].(string)
	if result["resultType"] != "input_required" || state == "" {
		c.w.t.Fatalf("the call = %v, want a question", result)
	}
	return state
}

// reply repeats the call with an answer.
func (c *client) reply(state string, answer object, name string, args object) *outcome {
	c.w.t.Helper()
	return c.outcomeOf(c.request("tools/call", answered(state, answer, name, args)))
}

func answered(state string, answer object, name string, args object) object {
	params := object{"name": name, "arguments": args, "inputResponses": object{"approval": answer}}
	if state != "" {
		params["requestState"] = state
	}
	return params
}

// forged repeats the call with an answer whose state belongs to no open question about it.
// That is a protocol error, and a denial in the log.
func (c *client) forged(state string, answer object, name string, args object, words string) {
	c.w.t.Helper()
	reply := c.begin("tools/call", answered(state, answer, name, args)).wait()
	e, _ := reply["error"].(object)
	message, _ := e["message"].(string)
	if e["code"] != -32602.0 || reply["result"] != nil || !strings.HasPrefix(message, "denied: ") || !strings.Contains(message, words) {
		c.w.t.Errorf("the call with a state of another = %v, want -32602 and %q", reply, words)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.denied++
}

// AP-01 to AP-04, as the client and the log show them.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, clientOnly)
	c := w.connectModern(choose("once"))
	docs := object{"pack_id": "triage"}

	c.reply("", accept("once"), openDocs, docs).want("denied", "nobody asked for")
	old := w.connect(choose("once"))
	old.reply("", accept("once"), openDocs, docs).want("denied", "nobody asked for")
	if got := old.questions(); len(got) > 0 {
		t.Errorf("a call with an answer of its own was asked about: %q", got)
	}

	state := c.ask(openDocs, docs)
	body, mac, _ := strings.Cut(state, ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(raw), `"e":1`, `"e":2`, 1)
	flip := func(i int) string { b := []byte(state); b[i] ^= 1; return string(b) }
	for _, forged := range []string{
		"x", ".", state[:len(state)-1], state + "A", body, body + ".", "." + mac, mac + "." + body, flip(0), flip(len(body) / 2), flip(len(body) + 1), flip(len(state) - 2),
		base64.RawURLEncoding.EncodeToString([]byte(later)) + "." + mac, strings.Repeat(state, 1000),
	} {
		c.forged(forged, accept("always"), openDocs, docs, "not one this server made")
	}
	// None of these used up the real one.
	c.reply(state, accept("once"), openDocs, docs).want("", "# Triage")
	c.forged(state, accept("once"), openDocs, docs, "used before")

	c.forged(c.ask(openDocs, docs), accept("once"), openDocs, object{"pack_id": "triage", "arguments": "x"}, "another call")
	c.forged(c.ask(openDocs, docs), accept("once"), enable, docs, "another call")
	c.reply(c.ask(openDocs, docs), accept("once"), openDocs, object{"pack_id": "none"}).want("not_found")
	w.denied++ // the log has one as well
	state = c.ask(openDocs, docs)
	w.put("packs/triage/docs/steps.md", "Other steps.\n")
	c.reply(state, accept("once"), openDocs, docs).want("denied", "another call, or something about the call changed")

	// The state is valid in the server that created it.
	state = c.ask(openDocs, docs)
	c.close()
	c = w.connectModern(choose("once"))
	c.forged(state, accept("once"), openDocs, docs, "not one this server made")
	reasons := 0
	for _, e := range w.entries() {
		if strings.Contains(e.Reason, "nobody asked for") {
			reasons++
		}
	}
	if reasons != 2 {
		t.Errorf("the log tells of %d answers that nobody asked for, want 2", reasons)
	}
}

// AP-04: an answer that arrives after the question has expired.
func TestStateExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, "PACKS_MCP_APPROVAL_WAIT=1s", "PACKS_MCP_APPROVAL_PENDING=2s")
	c := w.connectModern(choose("once"))
	docs := object{"pack_id": "triage"}
	state := c.ask(openDocs, docs)
	code := w.pending(1)[0].Code
	w.pending(0)
	c.forged(state, accept("once"), openDocs, docs, "too old")
	w.fails(1, "nobody answered until", "approvals", "approve", code)
}

// AP-05: anything that is not clearly a yes is a no, and the denial says what to do.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, clientOnly, "PACKS_MCP_APPROVAL_WAIT=1s")
	c := w.connect(mute)
	for name, result := range map[string]object{
		"decline":          {"action": "decline"},
		"decline, form":    {"action": "decline", "content": object{"decision": "always"}},
		"cancel":           {"action": "cancel"},
		"no form":          {"action": "accept"},
		"empty form":       {"action": "accept", "content": object{}},
		"another field":    {"action": "accept", "content": object{"Decision": "once"}},
		"not offered":      accept("yes"),
		"true":             {"action": "accept", "content": object{"decision": true}},
		"a list":           {"action": "accept", "content": object{"decision": []string{"once"}}},
		"a form in a list": {"action": "accept", "content": []any{object{"decision": "once"}}},
		"another action":   {"action": "ACCEPT", "content": object{"decision": "once"}},
		"nothing":          {},
	} {
		c.answers(func(string) object { return result })
		if got := c.tool(openDocs, object{"pack_id": "triage"}); got.code != "denied" || strings.Contains(got.message, "internal") {
			t.Errorf("%s: the call = %v, want a denial", name, got.result)
		}
	}
	c.answers(mute)
	c.tool(openDocs, object{"pack_id": "triage"}).want("denied", "nobody answered within 1s")
	w.connect(nil).tool(openDocs, object{"pack_id": "triage"}).want("denied", "cannot show questions", "approval.channels: [page, terminal]")
	if log, err := os.ReadFile(w.log()); err != nil || strings.Contains(string(log), `"decision":"once"`) {
		t.Errorf("the log has an allowance: %v", err)
	}
}

// AP-06: twenty calls at once are twenty questions with separate answers: what is denied
// does not run, and nothing runs twice.
func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(choose("once"))
	c.enable("triage")
	c.questions()
	c.answers(func(question string) object {
		if says(question, `argument 1: "denied"`) {
			return accept("deny")
		}
		return accept("once")
	})
	var all []*request
	for i := range 20 {
		all = append(all, c.beginTool(greet([]string{"Ada", "denied"}[i%2])))
	}
	ran := make(map[string]bool)
	for i, r := range all {
		if o := r.outcome(); i%2 == 1 {
			o.want("denied")
		} else {
			run, _ := o.want("", "hello Ada").content["run_id"].(string)
			ran[run] = true
		}
	}
	if got := len(c.questions()); got != 20 || len(ran) != 10 || len(w.runs()) != 10 {
		t.Errorf("%d questions, %d results, %d runs; want 20, 10 and 10", got, len(ran), len(w.runs()))
	}
	count := make(map[string]int) // lines of each run
	for _, e := range w.entries() {
		if e.Run != "" {
			count[string(e.Event)+" "+e.Run]++
		}
	}
	for _, run := range w.runs() {
		for _, event := range []audit.Event{audit.EventDecision, audit.EventRunStart, audit.EventRunEnd} {
			if n := count[string(event)+" "+run]; n != 1 || !ran[run] {
				t.Errorf("the run %s has %d lines %q, and its result came: %v", run, n, event, ran[run])
			}
		}
	}
}

// AP-07: an answer for one chat does not apply to another.
func TestTwoChats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, "PACKS_MCP_APPROVAL_WAIT=1s")
	one, other := w.connect(choose("chat")), w.connect(nil)
	docs := object{"pack_id": "triage"}
	one.tool(openDocs, docs).want("")
	one.tool(openDocs, docs).want("")
	if got := len(one.questions()); got != 1 {
		t.Errorf("%d questions in the chat, want one", got)
	}
	waiting := other.tool(openDocs, docs).want("approval_pending")
	// Nor does an answer that waits for one chat's call apply to the same call in another.
	third := w.connect(nil)
	w.ok("approvals", "approve", waiting.approvalCode())
	third.tool(openDocs, docs).want("approval_pending")
	other.tool(openDocs, docs).want("", "# Triage")
}

// AP-08: no file of a pack, a project or a workspace can allow anything.
func TestNobodyAllowsThemselves(t *testing.T) {
	t.Parallel()
	const allow = "rules:\n  - allow: {kind: [open, read, enable, run]}\napproval: {policy: first-run, channels: [page]}\n"
	w := newWorld(t, triage, clientOnly)
	for _, dir := range []string{"packs/triage", "packs", "project", "project/.packs-mcp", "project/.packs", "workspace"} {
		for _, file := range []string{"config.yaml", "packs-mcp.yaml", "rules.yaml", ".packs-mcp.yaml"} {
			w.put(dir+"/"+file, allow)
		}
		w.put(dir+"/grants.json", `{"version":1,"grants":[{"kind":"open","pack":"triage"}]}`)
	}
	w.put("project/.git/HEAD", "ref: refs/heads/main\n")
	c := w.connect(choose("deny"), "--project", filepath.Join(w.root, "project"), "--workspace", filepath.Join(w.root, "workspace"))
	c.tool(openDocs, object{"pack_id": "triage"}).want("denied", "chose to deny")
	if got := len(c.questions()); got != 1 {
		t.Errorf("%d questions, want one", got)
	}
}

// AP-09: rules see the arguments one by one, and the strictest rule counts. The client
// cannot ask, so calls that are not allowed wait.
func TestRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, "PACKS_MCP_APPROVAL_WAIT=1s")
	w.put("bin/git", "#!/bin/sh\necho ran \"$@\"\n")
	w.put("home/config.yaml", `rules:
  - allow: {argv: [git*, "**"]}
    match: [[git, status]]
  - deny: {argv: [git, push, "**"]}
    match: [[git, push, -f]]
    not_match: [[git, status]]
  - allow: {pack: triage, kind: [open, read]}
  - ask: {pack: triage, kind: read}
  - deny: {pack: triage, kind: enable}
`)
	w.env = append(w.env, "PATH="+filepath.Join(w.root, "bin")+":"+os.Getenv("PATH"))
	c := w.connect(nil)
	exec := func(command string, args ...string) object {
		return object{"pack_id": "triage", "command": command, "args": args}
	}
	const waits, denied = "approval_pending", "denied"
	calls := []struct {
		tool       string
		args       object
		code, word string
		request    *request
	}{
		{tool: execTool, args: exec("git", "status"), word: "ran status"},
		{tool: execTool, args: exec("git", "push"), code: denied, word: "a rule of the user's forbids it: config.yaml:"},
		{tool: execTool, args: exec("git", "push", "-f", "origin"), code: denied, word: "forbids it"},
		{tool: execTool, args: exec("git", "-c", "x", "push"), code: waits},
		{tool: execTool, args: exec("git", "-C", "/", "--no-pager", "push", "--force"), code: waits},
		{tool: execTool, args: exec("git", "status", "--short"), word: "ran status --short"},
		// A different name, or a path chosen by the model, is not covered by the allowance.
		{tool: execTool, args: exec(filepath.Join(w.root, "bin", "git"), "status"), code: waits},
		{tool: execTool, args: exec(filepath.Join(w.root, "bin", "git"), "push"), code: denied},
		{tool: execTool, args: exec("sh", "-c", "git push"), code: waits},
		{tool: execTool, args: exec("env", "git", "push"), code: waits},
		{tool: openDocs, args: object{"pack_id": "triage"}, word: "# Triage"},
		{tool: readFile, args: object{"pack_id": "triage", "path": "docs/steps.md"}, code: waits},
		{tool: enable, args: object{"pack_id": "triage"}, code: denied, word: "forbids it"},
	}
	for i := range calls {
		calls[i].request = c.beginTool(calls[i].tool, calls[i].args)
	}
	for _, call := range calls {
		if o := call.request.outcome(); o.code != call.code || !strings.Contains(fmt.Sprint(o.content), call.word) {
			t.Errorf("%s %v = %v, want the error %q and the words %q", call.tool, call.args, o.content, call.code, call.word)
		}
	}
	for _, e := range w.entries() {
		if e.Channel == "rule" && e.Rule == "" {
			t.Errorf("the log does not say which rule decided: %+v", e)
		}
	}
}

// The policy first-run asks about the first run of a tool that only reads, in any server, and
// about every run of other tools.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, "PACKS_MCP_APPROVAL_POLICY=first-run")
	look := object{"pack_id": "triage", "tool": "look", "arguments": object{}}
	questions := func(c *client, want int, after string) {
		t.Helper()
		if got := c.questions(); len(got) != want {
			t.Errorf("%d questions %s, want %d: %q", len(got), after, want, got)
		}
	}
	for i := range 2 {
		c := w.connect(choose("once"))
		c.tool(openDocs, object{"pack_id": "triage"}).want("")
		c.tool(readFile, object{"pack_id": "triage", "path": "docs/steps.md"}).want("")
		c.tool(enable, object{"pack_id": "triage"}).want("")
		questions(c, 0, "of opening, reading and enabling")
		c.tool(callTool, look).want("")
		c.tool(callTool, look).want("")
		questions(c, 1-i, fmt.Sprintf("of a tool that only reads, in server %d", i+1))
		c.tool(greet("Ada")).want("")
		c.tool(greet("Ada")).want("")
		questions(c, 2, "of another tool, twice")
		c.close()
	}
	w.put("packs/triage/scripts/greet.sh", strings.Replace(w.read("packs/triage/scripts/greet.sh"), "hello", "bye", 1))
	c := w.connect(choose("once"))
	c.tool(enable, object{"pack_id": "triage"}).want("")
	c.tool(callTool, look).want("", "bye")
	if got := c.questions(); len(got) != 1 || !says(got[0], "CHANGED") || !says(got[0], "scripts/greet.sh changed") {
		t.Errorf("the questions after a change are %q, want one that names the script", got)
	}

	// A pack in the project is not trusted: every call asks.
	w.put("project/.git/HEAD", "ref: refs/heads/main\n")
	w.put("project/.packs/theirs/SKILL.md", "---\nname: theirs\ndescription: Theirs.\n---\n# Theirs\n")
	c = w.connect(choose("once"), "--project", filepath.Join(w.root, "project"), "--attach", "theirs")
	c.tool(openDocs, object{"pack_id": "theirs"}).want("", "# Theirs")
	if got := c.questions(); len(got) != 1 || !says(got[0], "NOT trusted") {
		t.Errorf("the questions about a project's pack are %q, want one that warns", got)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// An "always" answer applies in the next server, and revoking it takes effect at once in a
// running one.
func TestAlwaysAndRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(choose("always"))
	c.enable("triage")
	c.tool(greet("Ada")).want("")
	c.close()

	c = w.connect(choose("deny"))
	c.enable("triage")
	c.tool(greet("Grace")).want("", "hello Grace")
	if got := c.questions(); len(got) > 0 {
		t.Errorf("the next server asks %q, want nothing", got)
	}
	// Calls without an "always" answer: the question offered none.
	restart := object{"pack_id": "triage", "tool": "restart", "arguments": object{}}
	send := object{"pack_id": "triage", "tool": "send", "arguments": object{}}
	c.answers(choose("always"))
	c.tool(callTool, restart).want("denied", "none of the choices")
	c.tool(callTool, send).want("denied", "none of the choices")

	grants := w.ok("approvals", "grants", "--json")
	if n := strings.Count(grants, `"id":`); n != 2 {
		t.Errorf("there are %d grants, want 2: %s", n, grants)
	}
	w.ok("approvals", "revoke", "--pack", "triage")
	c.answers(choose("deny"))
	c.tool(greet("Grace")).want("denied", "chose to deny")
	revoked := 0
	for _, e := range w.entries() {
		if e.Event == audit.EventRevoke {
			revoked++
		}
	}
	if revoked != 2 {
		t.Errorf("the log has %d grants taken back, want 2", revoked)
	}
}

// HM-01: a removed line is detected.
func TestDeletedLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(choose("deny"))
	for range 3 {
		c.tool(openDocs, object{"pack_id": "triage"}).want("denied")
	}
	c.close()
	w.ok("audit", "verify")
	w.damaged = true
	lines := strings.SplitAfter(strings.TrimSuffix(w.read("home/audit.jsonl"), "\n"), "\n")
	for i := range lines {
		without := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
		if err := os.WriteFile(w.log(), []byte(without), 0o600); err != nil {
			t.Fatal(err)
		}
		w.fails(1, "is not as it was written", "audit", "verify")
	}
}

// HM-02: a result says how the program was confined and what was truncated, and why a
// program was stopped.
func TestResultsAreHonest(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("head"); err != nil {
		t.Skip("head: not on this system")
	}
	w := newWorld(t, triage+`-- big/SKILL.md --
---
name: big
description: d
---
-- big/tools.json --
{"tools": [
  {"name": "much", "command": {"program": "./much.sh"}},
  {"name": "slow", "command": {"program": "./slow.sh"}, "policy": {"timeout_secs": 1}}
]}
-- big/much.sh --
#!/bin/sh
head -c 40000 /dev/zero | tr '\0' x
-- big/slow.sh --
#!/bin/sh
echo begun
exec sleep 60
`)
	c := w.connect(choose("once"))
	c.enable("big")
	o := c.tool(callTool, object{"pack_id": "big", "tool": "much", "arguments": object{}}).want("")
	if o.content["truncated"] != true || !slices.Contains([]any{"full", "partial", "none"}, o.content["sandbox"]) || !says(c.questions()[1], fmt.Sprint("sandbox: ", o.content["sandbox"])) {
		t.Errorf("the result = %v, want it to say that it is cut, and the level that was asked about", o.content)
	}
	o = c.tool(callTool, object{"pack_id": "big", "tool": "slow", "arguments": object{}})
	e, _ := o.content["error"].(object)
	if o.content["ok"] != false || e["code"] != "timeout" || o.content["stdout"] != "begun\n" {
		t.Errorf("the result = %v, want that it took too long", o.content)
	}
}
