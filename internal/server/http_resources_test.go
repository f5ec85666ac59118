package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// One chat's files, prompts and subscriptions do not affect another, in either era.
// Over HTTP every request has its own session, and a client's subscriptions outlive
// the request.
func TestHTTPResources(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage, lookOften)
	s := newSite(t, w)
	for _, modern := range []bool{false, true} {
		of := s.Older
		if modern {
			of = s.Newer
		}
		ada, grace := of(tokenAda, decide("chat")), of(tokenGrace, decide("deny"))
		ada.OK("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
		ran := ada.OK("triage__greet", map[string]any{"who": "Ada"})
		made := fmt.Sprintf("workspace://%v/made.txt", ran["workspace"])
		read := func(c *servertest.Client, uri string) map[string]any {
			return c.Ask("resources/read", map[string]any{"uri": uri})
		}
		if got := contentsOf(t, read(ada, made)); got["text"] != "made\n" {
			t.Errorf("modern %v: her own file = %v", modern, got)
		}
		if e, _ := read(grace, made)["error"].(map[string]any); e == nil || e["code"] == float64(toolerr.RPCNotGiven) {
			t.Errorf("modern %v: another's file = %v, want that there is none", modern, e)
		}
		// What one person allowed for her chat, the other is still asked about.
		const steps = "skill://triage/docs/steps.md"
		if got := contentsOf(t, read(ada, steps)); got["text"] == "" {
			t.Errorf("modern %v: %v", modern, got)
		}
		if e, _ := read(grace, steps)["error"].(map[string]any); e == nil || e["code"] != float64(toolerr.RPCNotGiven) {
			t.Errorf("modern %v: what grace denies = %v, want a denial", modern, e)
		}

		var hers, other *servertest.Stream
		if modern {
			listen := func(c *servertest.Client, uris ...string) *servertest.Stream {
				l := c.Open("POST", "/mcp", map[string]any{"id": "s", "method": "subscriptions/listen", "params": withMeta(map[string]any{
					"notifications": map[string]any{"resourceSubscriptions": uris, "promptsListChanged": true},
				}, false)})
				l.Next()
				return l
			}
			hers, other = listen(ada, made), listen(grace, made)
		} else {
			result(t, ada.Ask("resources/subscribe", map[string]any{"uri": made}))
			if reply := grace.Ask("resources/subscribe", map[string]any{"uri": made}); reply["error"] == nil {
				t.Errorf("grace subscribed to ada's file: %v", reply)
			}
			hers, other = ada.Open("GET", "/mcp", nil), grace.Open("GET", "/mcp", nil)
		}
		for _, c := range w.srv.chats.All() {
			if c.Workspaces.First().Handle == ran["workspace"] {
				// Replace it at once: a half-written file would be another change.
				other := filepath.Join(t.TempDir(), "made.txt")
				if err := os.WriteFile(other, []byte("made anew"), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(other, filepath.Join(c.Workspaces.First().Dir, "made.txt")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if m := hers.Next(); m["method"] != "notifications/resources/updated" || m["params"].(map[string]any)["uri"] != made {
			t.Errorf("modern %v: %v came, want that the file was updated", modern, m)
		}
		// A prompt changes the lists of its own chat.
		message(t, ada.Ask("prompts/get", map[string]any{"name": "detach", "arguments": map[string]any{"pack_id": "triage"}}))
		var heard []string
		for range map[bool]int{false: 3, true: 1}[modern] {
			heard = append(heard, hers.Next()["method"].(string))
		}
		if want := map[bool][]string{false: everyList, true: {lists.PromptsChanged}}[modern]; !slices.Equal(heard, want) {
			t.Errorf("modern %v: %q came, want %q", modern, heard, want)
		}
		if names := field(objects(result(t, grace.Ask("prompts/list", nil))["prompts"]), "name"); !slices.Contains(names, "triage") {
			t.Errorf("modern %v: the other chat has the prompts %q", modern, names)
		}
		hers.Stop()
		other.Stop()
		for m := range other.Lines {
			t.Errorf("modern %v: the other chat heard %v", modern, m)
		}
	}
	for _, e := range w.entries() {
		if e.Tool == "prompts/get" && e.Caller != "ada" {
			t.Errorf("the log has %+v, want ada's prompts", e)
		}
	}
}
