//go:build unix

package approvals_test

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// If the client's connection has ended while a call waits, an answer starts nothing
// unless the person says that it should run anyway.
func TestClientGone(t *testing.T) {
	t.Parallel()
	for _, anyway := range []bool{false, true} {
		w := newWorld(t, triage)
		c := w.connect(nil)
		c.enable("triage")
		r := c.beginTool(greet("ada"))
		call := w.pending(1)[0]
		if call.Gone {
			t.Errorf("the call is listed as %+v, and its client is there", call)
		}
		_ = c.in.Close()
		w.until("the client is gone", func() bool {
			_, calls := w.found()
			return len(calls) == 1 && calls[0].Gone && strings.Contains(calls[0].Note, "The client is gone")
		})
		w.fails(1, "approvals approve "+call.Code+" --client-gone", "approvals", "approve", call.Code)
		servers, _ := w.found()
		if len(servers) != 1 {
			t.Fatalf("%d servers, want one", len(servers))
		}
		if !anyway {
			w.ok("approvals", "deny", call.Code)
			r.outcome().want("denied")
		} else {
			w.ok("approvals", "approve", call.Code, "--client-gone")
			r.outcome().want("", "hello ada")
		}
		c.close()
		runs, said := w.runs(), ""
		for _, e := range w.entries() {
			if e.Event == audit.EventDecision && e.Kind == "run" && e.Run != "" {
				said = e.Reason
			}
		}
		if want := map[bool]int{true: 1}[anyway]; len(runs) != want || anyway != strings.Contains(said, "the client was gone, and it was chosen to run all the same") {
			t.Errorf("anyway %v: the runs %q, recorded as %q", anyway, runs, said)
		}
	}
}
