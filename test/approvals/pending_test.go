//go:build unix

package approvals_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

// briefly makes calls wait for the shortest possible time.
const briefly = "PACKS_MCP_APPROVAL_WAIT=1s"

// A call that nobody answers returns with its code. The answer then applies to the same
// call, once, in either era and whether or not the client can ask.
func TestLateAnswer(t *testing.T) {
	for name, connect := range map[string]func(*world) *client{
		"cannot ask":         func(w *world) *client { return w.connect(nil) },
		"asks in vain":       func(w *world) *client { return w.connect(mute) },
		"cannot ask, modern": func(w *world) *client { return w.connectModern(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, triage, briefly)
			c := connect(w)
			c.approved(enable, object{"pack_id": "triage"}).want("")

			code := c.tool(greet("Ada")).want("approval_pending", "packs-mcp approvals approve").approvalCode()
			if shown := w.ok("approvals", "show", code); !says(shown, `argument 1 "Ada"`) || !strings.Contains(shown, "The call has returned.") {
				t.Errorf("approvals show %s printed %s, want the call and that it has returned", code, shown)
			}
			if got := w.ok("approvals", "approve", strings.ToLower(strings.ReplaceAll(code, "-", ""))); !strings.Contains(got, "make the same call again") {
				t.Errorf("approvals approve printed %q, want what to do now", got)
			}
			w.fails(1, "is allowed already (once)", "approvals", "approve", code)
			asked := len(c.questions())
			other := c.beginTool(greet("Grace")) // another call
			w.until("the other call is asked about", func() bool { _, calls := w.found(); return len(calls) == 2 })
			c.tool(greet("Ada")).want("", "hello Ada")
			other.outcome().want("approval_pending")
			w.fails(1, "it was answered, and the call was made", "approvals", "approve", code)
			w.fails(1, "it was answered, and the call was made", "approvals", "deny", code)
			c.tool(greet("Ada")).want("approval_pending")
			if n := len(c.questions()); asked > 0 && n != 2 {
				t.Errorf("the client was asked %d times more, want twice: about the other call, and when the answer was spent", n)
			}
			if got := len(w.runs()); got != 1 {
				t.Errorf("%d runs, want one", got)
			}
		})
	}
}

// A late denial applies when the call is made again, and a late allowance can be revoked.
func TestLateDenial(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, briefly)
	c := w.connect(nil)
	docs := object{"pack_id": "triage"}
	code := c.tool(openDocs, docs).want("approval_pending").approvalCode()
	w.ok("approvals", "deny", code)
	w.decidedLate++
	w.fails(1, "was answered before: denied, in a terminal", "approvals", "approve", code)
	c.tool(openDocs, docs).want("denied", "the person denied it at")

	code = c.tool(openDocs, docs).want("approval_pending").approvalCode()
	for _, more := range []string{"chat", "always"} {
		w.fails(1, "without a terminal", "approvals", "approve", code, "--for", more)
	}
	w.decide(code, "always")
	w.ok("approvals", "deny", code)
	w.decidedLate++
	if got := w.ok("approvals", "grants", "--json"); strings.Contains(got, `"id"`) {
		t.Errorf("there is a grant after it was taken back: %s", got)
	}
	c.tool(openDocs, docs).want("denied", "the person denied it at")
	want := []string{"open pending", "open deny terminal", "open deny terminal", "open pending", "open always terminal", "open deny terminal", "open deny terminal"}
	if diff := cmp.Diff(want, w.decisions()); diff != "" {
		t.Errorf("the log's decisions (-want +got):\n%s", diff)
	}
}

// A code is valid only for its question, and only while that is open.
func TestCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, briefly, "PACKS_MCP_APPROVAL_PENDING=4s")
	w.fails(1, "no server of yours is running", "approvals", "approve", "K7QM-2F9X")
	c := w.connect(nil)
	r := c.beginTool(openDocs, object{"pack_id": "triage"})
	call := w.pending(1)[0]
	if call.Waits.IsZero() || len(call.Code) != 9 {
		t.Errorf("the call is listed as %+v, want a code, and that it waits", call)
	}
	w.fails(2, "needs no value", "approvals", "approve", call.Code, "--set", "a=b")
	w.fails(2, "--for is", "approvals", "approve", call.Code, "--for", "ever")
	w.fails(2, "is not a code", "approvals", "approve", "K7QM")
	w.fails(2, "is not a code", "approvals", "approve", "../../../x")
	w.fails(1, "no call waits under the code K7QM-2F9X", "approvals", "approve", "K7QM-2F9X")
	w.fails(1, "no call waits under the code K7QM-2F9X", "approvals", "deny", "K7QM-2F9X")
	r.outcome().want("approval_pending")
	w.pending(0)
	w.fails(1, "nobody answered until", "approvals", "approve", call.Code)
	w.fails(1, "nobody answered until", "approvals", "deny", call.Code)
	c.tool(openDocs, object{"pack_id": "triage"}).want("approval_pending")
}

// A cancelled call is withdrawn from every channel, and has no effect later.
func TestCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(mute)
	r := c.beginTool(openDocs, object{"pack_id": "triage"})
	call := w.pending(1)[0]
	c.send(object{"method": "notifications/cancelled", "params": object{"requestId": r.id}})
	w.pending(0)
	w.fails(1, "the client cancelled the call", "approvals", "approve", call.Code)
	w.until("the form is withdrawn", func() bool { return len(c.notified("notifications/cancelled")) == 1 })
	if got := w.ok("approvals", "list", "--json"); strings.Contains(got, "code") {
		t.Errorf("approvals list has the call still: %s", got)
	}
	w.denied++ // the client does not wait for the reply
	// A server that ends withdraws its waiting calls.
	c.beginTool(openDocs, object{"pack_id": "triage"})
	call = w.pending(1)[0]
	_ = c.cmd.Process.Signal(os.Interrupt)
	<-c.ended
	w.denied++
	w.fails(1, "no server of yours is running", "approvals", "approve", call.Code)
	if left, err := filepath.Glob(filepath.Join(w.home, "run", "*")); err != nil || len(left) > 0 {
		t.Errorf("the server left %q", left)
	}
}

// A client that requested progress is told that its call waits, even if its token is 0.
func TestProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(nil)
	tokens := []any{0.0, "", "long"}
	files := []string{"SKILL.md", "docs/steps.md", "tools.json", "scripts/greet.sh"}
	var all []*request
	for i, file := range files {
		params := object{"name": readFile, "arguments": object{"pack_id": "triage", "path": file}}
		if i < len(tokens) { // the last one requests no progress
			params["_meta"] = object{"progressToken": tokens[i]}
		}
		all = append(all, c.begin("tools/call", params))
	}
	calls := w.pending(len(files))
	w.until("each is told of", func() bool { return len(c.notified("notifications/progress")) >= len(tokens) })
	for _, n := range c.notified("notifications/progress") {
		i := slices.Index(tokens, n["progressToken"])
		message, _ := n["message"].(string)
		if i < 0 || !slices.ContainsFunc(calls, func(call control.Call) bool { return strings.Contains(message, call.Code) }) {
			t.Errorf("progress %v, want it for a token that was given, with the call's code", n)
		}
	}
	for _, call := range calls {
		w.ok("approvals", "deny", call.Code)
	}
	for _, r := range all {
		r.outcome().want("denied")
	}
}

// A client that declines automatically counts as one that cannot ask: the call waits, and a
// person answers in the terminal. If a person declines, that is a decision.
func TestDeclinedByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	docs := object{"pack_id": "triage"}
	c := w.connect(func(string) object { return object{"action": "decline"} })
	byItself := func() string {
		var code string
		w.until("the client has declined", func() bool {
			_, calls := w.found()
			if len(calls) == 1 {
				code = calls[0].Code
			}
			return len(calls) == 1 && strings.Contains(calls[0].Note, "the client declined by itself") && !calls[0].Waits.IsZero()
		})
		return code
	}
	r := c.beginTool(openDocs, docs)
	w.ok("approvals", "approve", byItself())
	r.outcome().want("", "# Triage")
	r = c.beginTool(openDocs, docs)
	w.ok("approvals", "deny", byItself())
	if code := r.outcome().want("denied", "chose to deny").approvalCode(); code != "" {
		t.Errorf("a person's denial names the code %s", code)
	}
	if log, err := os.ReadFile(w.log()); err != nil || strings.Count(string(log), "the client declined by itself") != 2 {
		t.Errorf("the log does not say twice that the client declined by itself: %v", err)
	}
	c.close()

	// The same in the newer era, with the usual waiting time.
	w = newWorld(t, triage, briefly)
	file := object{"pack_id": "triage", "path": "SKILL.md"}
	c = w.connectModern(mute)
	code := c.reply(c.ask(readFile, file), object{"action": "cancel"}, readFile, file).want("approval_pending", "Make exactly the same call again to keep waiting").approvalCode()
	w.pending(1)
	w.ok("approvals", "approve", code)
	c.tool(readFile, file).want("", "Triage incidents")

	// Later than a program would decline, a person declines.
	w.env = append(w.env, "PACKS_MCP_APPROVAL_WAIT=30s")
	c = w.connect(func(string) object { <-time.After(1100 * time.Millisecond); return object{"action": "decline"} })
	if code := c.tool(openDocs, docs).want("denied", "the person declined").approvalCode(); code != "" {
		t.Errorf("a person's decline names the code %s", code)
	}

	// What a person denied in the form cannot be allowed elsewhere.
	c = w.connect(choose("deny"))
	if code := c.tool(openDocs, docs).want("denied", "chose to deny").approvalCode(); code != "" {
		t.Errorf("a person's own denial names the code %s", code)
	}
}

// Two answers at once: of two allowances one counts, and a call whose denial counted never
// ran.
func TestTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(nil)
	c.enable("triage")
	ran := 0
	for round := range 8 {
		r := c.beginTool(greet("Ada"))
		code := w.pending(1)[0].Code
		second := "approve"
		if round%2 == 1 {
			second = "deny"
		}
		var status [2]int
		var wg sync.WaitGroup
		for i, verb := range []string{"approve", second} {
			wg.Go(func() { _, _, status[i] = w.command("approvals", verb, code) })
		}
		wg.Wait()
		o := r.outcome()
		if o.code == "" {
			ran++
		}
		switch {
		case second == "approve" && (o.code != "" || status[0]+status[1] != 1):
			t.Errorf("two allowances ended with %v, and the call with %q; want that one counts", status, o.code)
		case second == "deny" && status[1] == 0 && o.code != "denied":
			t.Errorf("a denial counted, and the call ended with %v", o.result)
		case second == "deny" && status[1] != 0 && (status[0] != 0 || o.code != ""):
			t.Errorf("allowing and denying ended with %v, and the call with %q; want one of them", status, o.code)
		}
	}
	if got := len(w.runs()); got != ran {
		t.Errorf("%d runs, and %d calls that were allowed", got, ran)
	}
}

// If the client and the terminal both ask, the first answer counts, and the form is
// withdrawn. The page is opened once, only for what the client does not show.
func TestChannels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connect(mute)
	r := c.beginTool(openDocs, object{"pack_id": "triage"})
	w.decide(w.pending(1)[0].Code, "chat")
	r.outcome().want("")
	if got := c.notified("notifications/cancelled"); len(got) != 1 {
		t.Errorf("%d forms were withdrawn, want one", len(got))
	}
	if _, err := os.Stat(filepath.Join(w.root, "shown")); err == nil {
		t.Error("the browser was opened for what the client shows")
	}
	c.tool(openDocs, object{"pack_id": "triage"}).want("")

	c = w.connect(nil)
	for range 2 {
		r = c.beginTool(openDocs, object{"pack_id": "triage"})
		w.approve()
		r.outcome().want("")
	}
	w.until("the browser is opened", func() bool { _, err := os.Stat(filepath.Join(w.root, "shown")); return err == nil })
	shown := strings.Fields(w.read("shown"))
	if len(shown) != 1 || !strings.HasPrefix(shown[0], "file://"+w.home+"/run/") || strings.ContainsAny(shown[0], "?#") {
		t.Errorf("the browser was given %q, want one file of the run folder, and no secret", shown)
	}
	var page, terminal bool
	for _, d := range w.decisions() {
		page, terminal = page || strings.HasSuffix(d, " page"), terminal || strings.HasSuffix(d, " terminal")
	}
	if page || !terminal {
		t.Errorf("the log's decisions are %q, want those of a terminal", w.decisions())
	}
}

// A call that has returned gets an "always" answer and a denial at the same moment. If the
// denial counts, nothing is stored, whichever came first.
func TestLateDenialWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, briefly)
	w.damaged = true // chance decides which counts, and so the number of denials
	c := w.connect(nil)
	s := c.server()
	var calls []*request
	for i := range 20 {
		calls = append(calls, c.beginTool(echo(strings.Repeat("x", i+1))))
	}
	for _, r := range calls {
		code := r.outcome().want("approval_pending").approvalCode()
		var denying error
		var wg sync.WaitGroup
		wg.Go(func() {
			// Before the denial, or too late.
			_, _ = s.Decide(t.Context(), control.Decision{Code: code, Decision: "always"})
		})
		wg.Go(func() { _, denying = s.Decide(t.Context(), control.Decision{Code: code, Decision: "deny"}) })
		wg.Wait()
		if denying != nil {
			t.Errorf("Decide(deny) = %v, want that it counts: the call has not begun", denying)
		}
	}
	if words, _ := w.keptWords(); len(words) > 0 {
		t.Errorf("%d of %d commands that were denied are allowed for always", len(words), len(calls))
	}
}

// In the newer era the client holds the question, and the terminal shows it too. The first
// answer counts, a denial anywhere wins, and nothing counts twice.
func TestTwoChannelsModern(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	c := w.connectModern(mute)
	c.server()
	enabled := object{"pack_id": "triage"}
	c.reply(c.ask(enable, enabled), accept("once"), enable, enabled).want("")
	grants := func() string { return w.ok("approvals", "grants", "--json") }
	name, args := greet("Ada")
	for _, tt := range []struct {
		terminal string
		client   object // nil: it makes the call again without an answer
		code     string
		keeps    bool
	}{
		{"always", accept("deny"), "denied", false},
		{"once", object{"action": "decline"}, "", false}, // at once, so not by a person
		{"deny", accept("always"), "denied", false},
		{"deny", nil, "denied", false},
		{"once", accept("deny"), "denied", false},
		{"once", accept("always"), "", false},
		{"once", nil, "", false},
		{"always", accept("once"), "", true},
	} {
		state := c.ask(name, args)
		before := len(w.runs())
		w.decide(w.pending(1)[0].Code, tt.terminal)
		if tt.terminal == "deny" {
			w.decidedLate++
		}
		var o *outcome
		if tt.client == nil {
			o = c.tool(name, args)
		} else {
			o = c.reply(state, tt.client, name, args)
		}
		ran := len(w.runs()) - before
		if o.code != tt.code || (ran == 1) != (tt.code == "") || ran > 1 {
			t.Errorf("%s in the terminal, and %v: the call ended with %v, after %d runs", tt.terminal, tt.client, o.content, ran)
		}
		if keeps := strings.Contains(grants(), `"id"`); keeps != tt.keeps {
			t.Errorf("%s in the terminal, and %v: there are grants: %v, want %v", tt.terminal, tt.client, keeps, tt.keeps)
		}
		// The answer is used up, and so is the state.
		c.forged(state, accept("once"), name, args, "used before")
		if got := len(w.runs()) - before; got != ran {
			t.Errorf("%s in the terminal, and %v: %d more runs with the same state", tt.terminal, tt.client, got-ran)
		}
	}
	c.tool(name, args).want("", "hello Ada") // always
}

// If the configuration omits the terminal, no command can answer.
func TestWithoutTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage, briefly, "PACKS_MCP_APPROVAL_CHANNELS=elicitation,page")
	c := w.connect(nil)
	o := c.tool(openDocs, object{"pack_id": "triage"}).want("approval_pending", "approval page")
	stdout, stderr, status := w.command("approvals", "approve", o.approvalCode())
	if status != 1 {
		t.Errorf("approvals approve = %d, %s%s, want 1", status, stdout, stderr)
	}
	if stdout, stderr, _ := w.command("approvals", "list", "--json"); strings.Contains(stdout, o.approvalCode()) {
		t.Errorf("approvals list shows the call: %s%s", stdout, stderr)
	}
	c.tool(openDocs, object{"pack_id": "triage"}).want("approval_pending")
}
