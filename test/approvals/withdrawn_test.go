//go:build unix

package approvals_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A follower is a terminal that follows one server's calls.
type follower struct {
	t      *testing.T
	server *terminal.Server
	calls  chan []control.Call
}

func (c *client) terminal() *follower {
	m := &follower{t: c.w.t, server: c.server(), calls: make(chan []control.Call)}
	ctx, cancel := context.WithTimeout(c.w.t.Context(), 4*patience)
	c.w.t.Cleanup(cancel)
	go func() {
		defer close(m.calls)
		for calls, err := range m.server.Watch(ctx) {
			if err != nil {
				return
			}
			select {
			case m.calls <- calls:
			case <-ctx.Done():
				return
			}
		}
	}()
	return m
}

// sees waits until n calls are shown, and returns them.
func (m *follower) sees(n int) []control.Call {
	m.t.Helper()
	for calls := range m.calls {
		if len(calls) == n {
			return calls
		}
	}
	m.t.Fatalf("the terminal never shows %d calls", n)
	return nil
}

// over checks what the server says about a call that no longer waits.
func (m *follower) over(code, problem, words string) {
	m.t.Helper()
	r, ok := errors.AsType[*terminal.RefusedError](m.server.Why(m.t.Context(), code))
	if !ok || r.Problem != problem || !strings.Contains(r.Message, words) {
		m.t.Errorf("Why(%s) = %+v, want %s and %q", code, r, problem, words)
	}
}

// A question that is answered or withdrawn in one place disappears from the others at once,
// and they say why.
func TestWithdrawnEverywhere(t *testing.T) {
	t.Parallel()
	docs := object{"pack_id": "triage"}
	w := newWorld(t, triage)
	c := w.connect(mute)
	m := c.terminal()

	// Answered in the terminal: the client's form is withdrawn under its own id.
	r := c.beginTool(openDocs, docs)
	code := m.sees(1)[0].Code
	c.w.until("the client shows its form", func() bool { return len(c.questions()) == 1 })
	done, err := m.server.Decide(t.Context(), control.Decision{Code: code, Decision: "once"})
	if err != nil || done.Held || done.Carried {
		t.Errorf("Decide() = %+v, %v; want that the call goes on", done, err)
	}
	r.outcome().want("", "# Triage")
	m.sees(0)
	c.mu.Lock()
	form := c.forms[0]
	c.mu.Unlock()
	if gone := c.notified("notifications/cancelled"); len(gone) != 1 || gone[0]["requestId"] != form {
		t.Errorf("the notifications are %v, want the form %v withdrawn", gone, form)
	}

	// Answered in the client: the terminal says so.
	answer := make(chan object)
	c.answers(func(string) object { return <-answer })
	r = c.beginTool(openDocs, docs)
	code = m.sees(1)[0].Code
	answer <- accept("once")
	m.sees(0)
	m.over(code, string(queue.CodeAnswered), "allowed, in the client")
	r.outcome().want("")

	// The client cancels the call.
	c.answers(mute)
	r = c.beginTool(openDocs, docs)
	code = m.sees(1)[0].Code
	c.send(object{"method": "notifications/cancelled", "params": object{"requestId": r.id}})
	m.sees(0)
	m.over(code, string(queue.CodeWithdrawn), "the client cancelled the call")
	w.denied++ // the client does not wait for the reply
}

// In the newer era a server cannot withdraw the form, and the terminal says so. The client's
// answer appears there at once, too.
func TestWithdrawnModern(t *testing.T) {
	t.Parallel()
	docs := object{"pack_id": "triage"}
	w := newWorld(t, triage)
	c := w.connectModern(mute)
	m := c.terminal()

	state := c.ask(openDocs, docs)
	code := m.sees(1)[0].Code
	if out := w.ok("approvals", "approve", code); !strings.Contains(out, "still shows the question") {
		t.Errorf("approvals approve printed %q, want that the form is still there", out)
	}
	c.reply(state, accept("once"), openDocs, docs).want("", "# Triage")
	m.sees(0)

	state = c.ask(openDocs, docs)
	code = m.sees(1)[0].Code
	if out := w.ok("approvals", "deny", code); !strings.Contains(out, "nothing that is chosen there changes this") {
		t.Errorf("approvals deny printed %q, want that the form is still there", out)
	}
	w.decidedLate++
	c.reply(state, accept("once"), openDocs, docs).want("denied")

	state = c.ask(openDocs, docs)
	code = m.sees(1)[0].Code
	c.reply(state, accept("once"), openDocs, docs).want("")
	m.sees(0)
	m.over(code, string(queue.CodeAnswered), "allowed, in the client")
}
