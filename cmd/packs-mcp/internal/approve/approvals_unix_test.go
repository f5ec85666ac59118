//go:build unix

package approve

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/test/screen"
)

// A person goes through the waiting calls in a real terminal.
func TestApprovalsOnATerminal(t *testing.T) {
	t.Parallel() // it waits most of the time
	o := openOffices(t, "shop")[0]
	first := o.call(t, "first")
	s := screen.Start(t, o.env, t.TempDir(), "approvals")
	question := s.Until(runPrompt)
	if !strings.Contains(question, "---- "+first.code) || !strings.Contains(question, "Asked ") || strings.Contains(question, "\x1b[1m") {
		t.Errorf("the question is\n%q", question)
	}
	// The time counts down in its own line, and what is typed stays.
	s.Enter("x")
	s.Until("\x1b7\x1b[1A\rThe client waits 59 min for your answer.\x1b[K\x1b8")
	s.Enter("\x7fo\r")
	s.Until("Allowed (once)")
	first.until(t, "allowed")

	// What was typed before, even the beginning of a line, is not an answer.
	s.Until("No call waits.")
	s.Enter("o\ro\ro")
	second := o.call(t, "second")
	s.Until("Run tool second of")
	s.Enter("o\ro") // it is shown but cannot be answered yet
	s.Until(runPrompt)
	s.Enter("\r")
	s.Until("Exactly what runs")
	s.Until(runPrompt)
	second.waits(t)

	s.Enter("\x03") // Ctrl-C
	s.Until("One call was left undecided")
	if code := s.Ended(); code != 0 {
		t.Errorf("the status after Ctrl-C is %d, want 0", code)
	}
	second.waits(t)

	s = screen.Start(t, o.env, t.TempDir(), "approvals")
	s.Until(runPrompt)
	s.Enter("\x04") // Ctrl-D
	s.Until("One call was left undecided")
	if code := s.Ended(); code != 0 {
		t.Errorf("the status after Ctrl-D is %d, want 0", code)
	}
	second.waits(t)
	if got := o.decisions(); len(got) != 1 {
		t.Errorf("the log has %q, want the first answer only", got)
	}
}

// Only this program's own text has colours.
func TestApprovalsColours(t *testing.T) {
	t.Parallel() // it waits most of the time
	o := openOffices(t, "shop")[0]
	o.call(t, "first")
	s := screen.Start(t, append(o.env, "NO_COLOR="), t.TempDir(), "approvals")
	question := s.Until(runPrompt)
	if !strings.Contains(question, "\x1b[1mRun tool first of pack triage?\x1b[0m\r\n") || strings.Count(question, "\x1b") != 2 {
		t.Errorf("the question is\n%q\nwant its title in bold, and nothing else", question)
	}
	s.Enter("q\r")
	s.Ended()
}

// In a terminal, a code alone allows nothing: the call is shown, and confirmed.
func TestApproveOnATerminal(t *testing.T) {
	t.Parallel() // it waits most of the time
	o := openOffices(t, "shop")[0]
	for _, tc := range []struct {
		name   string
		typed  string
		code   int
		result string // empty: the call waits
	}{
		{"yes", "YES\r", 0, "allowed"},
		{"y", "y\r", 1, ""},
		{"nothing", "\r", 1, ""},
		{"Ctrl-C", "\x03", 1, ""},
		{"Ctrl-D", "\x04", 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := o.call(t, "call", call.Field{Name: "url", Title: "Where"})
			s := screen.Start(t, o.env, t.TempDir(), "approvals", "approve", c.code)
			s.Until("Run tool call of pack triage?")
			s.Until("Where (url): ")
			s.Enter("https://example.com\r")
			s.Until("Once: this exact call, one time.")
			s.Until("Type yes to allow that: ")
			s.Enter(tc.typed)
			if tc.result != "" {
				s.Until("Allowed (once)")
				c.until(t, tc.result)
			} else {
				s.Until("packs-mcp: error: nothing was decided; the call still waits")
				c.waits(t)
			}
			if code := s.Ended(); code != tc.code {
				t.Errorf("the status is %d, want %d", code, tc.code)
			}
			c.cancel()
			<-c.ended
		})
	}
	for _, d := range o.decisions() {
		if strings.Contains(d, "without a terminal") {
			t.Errorf("the log says %q of an answer that was typed", d)
		}
	}
	c := o.call(t, "yes")
	s := screen.Start(t, o.env, t.TempDir(), "approvals", "approve", c.code, "--yes", "--for", "chat")
	s.Until("Allowed (chat)")
	c.until(t, "allowed")
	if code := s.Ended(); code != 0 {
		t.Errorf("the status is %d, want 0", code)
	}
	if all := o.decisions(); !strings.HasSuffix(all[len(all)-1], "confirmed by --yes") {
		t.Errorf("the log says %q, want how it was confirmed", all[len(all)-1])
	}
}
