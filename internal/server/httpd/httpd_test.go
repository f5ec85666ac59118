package httpd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// A whole conversation in both eras: handshake, list, calls with approval, list
// change, run, artifact; each person's name in the questions and in the log.
func TestHTTPWholeWay(t *testing.T) {
	needShell(t)
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern=%v", modern), func(t *testing.T) {
			w := newWorld(t, triage)
			s := newSite(t, w)
			var c *servertest.Client
			if modern {
				c = s.Newer(tokenAda, decide("once"))
				if r := result(t, c.Ask("server/discover", nil)); !strings.Contains(r["instructions"].(string), "- pack_id: triage") {
					t.Errorf("server/discover = %v, want the pack in the instructions", r)
				}
			} else {
				c = s.Older(tokenAda, decide("once"))
			}
			if got := len(c.Listed()); got != 6 {
				t.Errorf("%d tools, want 6", got)
			}
			opened := c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			if got := opened["entry_doc"].(map[string]any)["content"]; got != "# Triage\n\nRead docs/steps.md.\n" {
				t.Errorf("open_docs = %q", got)
			}
			c.OK("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
			if got := c.Heard(); !modern && !slices.Equal(got, []string{"notifications/tools/list_changed"}) {
				t.Errorf("enable_tools sent %q on its stream, want list_changed", got)
			}
			if !slices.Contains(c.Listed(), "triage__greet") {
				t.Error("the pack's tool is not listed")
			}
			ran := c.OK("triage__greet", map[string]any{"who": "Ada"})
			if ran["stdout"] != "hello Ada\n" {
				t.Errorf("the run = %v", ran)
			}
			made := c.OK("capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt", "workspace": ran["workspace"]})
			if made["content"] != "made\n" {
				t.Errorf("the artifact = %v", made)
			}
			c.Answer = decide("deny")
			c.Fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			if len(c.Asked) != 5 || !says(c.Asked[0], `for: "ada", according to the client`) {
				t.Errorf("%d questions, want 5 that name ada: %.300q", len(c.Asked), c.Asked)
			}
			var got []string
			for _, e := range w.entries() {
				got = append(got, strings.TrimSpace(string(e.Event)+" "+e.Kind+" "+e.Decision+" "+e.Caller))
			}
			want := []string{"decision open once ada", "decision enable once ada", "decision run once ada", "run.start run  ada", "run.end run  ada", "decision read once ada", "decision open deny ada"}
			if !slices.Equal(got, want) {
				t.Errorf("the log has\n%q, want\n%q", got, want)
			}
		})
	}
}
