//go:build unix

package approvals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// slow waits in the project until the test releases it.
const slow = `: >"$PACKS_WORKSPACE/$PACKS_RUN_ID"; until [ -e "$PACKS_WORKSPACE/go" ]; do sleep 0.05; done; echo slow >made`

// holdTurn starts a run in the project that keeps its turn until let is called. It returns
// the run's id.
func holdTurn(t *testing.T, w *world, v *victim) (id string, let func()) {
	t.Helper()
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	return c.holdTurn(t, v)
}

func (c *client) holdTurn(t *testing.T, v *victim) (id string, let func()) {
	t.Helper()
	w := c.w
	r := c.beginTool(v.do(slow))
	w.until("the slow run to have started", func() bool { return len(w.runs()) > 0 })
	id = w.runs()[0]
	found, err := filepath.Glob(filepath.Join(w.home, "workspaces", "*", id))
	if err != nil || len(found) != 1 {
		t.Fatalf("the workspace of %s: %v, %v", id, found, err)
	}
	return id, func() {
		if err := os.WriteFile(filepath.Join(filepath.Dir(found[0]), "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.outcome().want("")
	}
}

// progressing calls the tool and requests progress.
func (v *victim) progressing(c *client, script string) *request {
	name, args := v.do(script)
	return c.begin("tools/call", object{"name": name, "arguments": args, "_meta": object{"progressToken": "p"}})
}

// told waits for a progress message with these words, and returns it.
func told(c *client, words ...string) (message string) {
	c.w.t.Helper()
	c.w.until("progress with "+strings.Join(words, ", "), func() bool {
		for _, p := range c.notified("notifications/progress") {
			if message, _ = p["message"].(string); hasAll(message, words...) {
				return true
			}
		}
		return false
	})
	return message
}

func hasAll(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// ends returns the log entries about the ends of runs.
func (w *world) ends() (ends []audit.Entry) {
	w.t.Helper()
	for _, e := range w.entries() {
		if e.Event == audit.EventRunEnd {
			ends = append(ends, e)
		}
	}
	return ends
}

// A run that waits for its turn in a folder names the run that has it, both in progress
// messages to the client and in the log, and continues when it gets the turn.
func TestTurnWaitIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	v := newVictim(t, w)
	holder, let := holdTurn(t, w, v)
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	second := v.progressing(c, `cat made`)
	if message := told(c, "waiting for its turn", holder, "do of sly"); !strings.Contains(message, v.dir) {
		t.Errorf("the client is told %q, want the folder %s in it", message, v.dir)
	}
	w.until("the log to say so", func() bool {
		return hasAll(c.stderr.String(), "waits for its turn", "holder="+holder, "holder_pack=sly", "holder_tool=do")
	})
	let()
	second.outcome().want("", "slow")
	last := 0.0
	for _, p := range c.notified("notifications/progress") {
		n, _ := p["progress"].(float64)
		if n <= last {
			t.Errorf("progress %v came after %v, want more each time", n, last)
		}
		last = n
	}
}

// A call that is cancelled while it waits for its turn ends at once, and starts nothing,
// even when the turn becomes free.
func TestTurnWaitCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	v := newVictim(t, w)
	_, let := holdTurn(t, w, v)
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	second := v.progressing(c, `echo cancelled >cancelled`)
	told(c, "waiting for its turn")
	c.send(object{"method": "notifications/cancelled", "params": object{"requestId": second.id}})
	// The turn is still taken, so the call did not end because it got the turn.
	w.until("the cancelled run to have ended", func() bool { return len(w.ends()) > 0 })
	if e := w.ends()[0]; e.ExitCode != nil || e.Error == "" {
		t.Errorf("the log has %+v, want that nothing was started", e)
	}
	let()
	c.tool(v.do(`cat made`)).want("", "slow") // the cancelled wait does not block others
	if _, err := os.Lstat(filepath.Join(v.dir, "cancelled")); err == nil {
		t.Error("the cancelled call ran")
	}
}

// A person's decision in a terminal waits for a run that works in the folder, and says so.
func TestTurnWaitOfCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	v := newVictim(t, w)
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	o := c.tool(v.do(`echo new >CLAUDE.md`)).want("", "1 change waits")
	sets, _ := o.content["changes"].([]any)
	id, _ := sets[0].(object)["set"].(string)
	holder, let := holdTurn(t, w, v)
	done := make(chan string)
	go func() {
		_, stderr, status := w.command("changes", "apply", id)
		done <- fmt.Sprintf("%d %s", status, stderr)
	}()
	select {
	case said := <-done:
		t.Fatalf("changes apply did not wait: %s", said)
	case <-time.After(time.Second):
	}
	let()
	if said := <-done; !strings.HasPrefix(said, "0 ") || !hasAll(said, "Waiting for run", holder, "to end") {
		t.Errorf("changes apply = %s, want that it waited for %s", said, holder)
	}
	if got, err := os.ReadFile(filepath.Join(v.dir, "CLAUDE.md")); string(got) != "new\n" {
		t.Errorf("CLAUDE.md = %q, %v, want it applied", got, err)
	}
}

// A run waits no longer than a run may take, and then says which one has its turn. This
// holds even if the server that has it is stopped and can end no run.
func TestTurnWaitEnds(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]bool{"a slow run": false, "a stopped server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turnWaitEnds(t, stops)
		})
	}
}

func turnWaitEnds(t *testing.T, stops bool) {
	w := newWorld(t, sly)
	v := newVictim(t, w)
	first := w.connect(choose("once"), "--project", v.dir)
	first.enable("sly")
	holder, let := first.holdTurn(t, v)
	signal := func(s syscall.Signal) {
		t.Helper()
		if !stops {
			return
		}
		if err := first.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	t.Cleanup(func() { _ = first.cmd.Process.Signal(syscall.SIGCONT) }) // otherwise it never ends
	w.env = append(w.env, "PACKS_MCP_SANDBOX_TIMEOUT_MAX=1s", "PACKS_MCP_LIMITS_TIMEOUT=1s")
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	c.tool(v.do(`echo late >late`)).want("folder_busy", "waited 1s for its turn", holder, "do of sly", v.dir, "Nothing was started")
	if ends := w.ends(); len(ends) != 1 || !strings.Contains(ends[0].Error, holder) {
		t.Errorf("the log has %+v, want that nothing was started because of %s", ends, holder)
	}
	signal(syscall.SIGCONT)
	let()
	c.tool(v.do(`cat made`)).want("", "slow")
	if _, err := os.Lstat(filepath.Join(v.dir, "late")); err == nil {
		t.Error("the call that gave up ran")
	}
}
