package approvals

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// evil controls a terminal, reverses text and hides characters.
const evil = "a\x1b]0;PWN\x07b\u202ec\u009bd\U000e0041e"

// grants is a fake [Grants] in memory.
type grants struct {
	mu  sync.Mutex
	all []control.ChatGrant
	err error // of RevokeChatGrant
}

func (g *grants) ChatGrants() []control.ChatGrant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

func (g *grants) RevokeChatGrant(id string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.all)
	if g.err == nil {
		g.all = slices.DeleteFunc(g.all, func(c control.ChatGrant) bool { return c.ID == id })
	}
	return g.err != nil || len(g.all) < n, g.err
}

// The terminal sees what holds in chats, escaped, and takes it back. A server whose
// calls are answered on its page only tells it too: that gives nobody more.
func TestGrants(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	full := control.ChatGrant{
		ID: evil, Digest: evil, Since: since, Kind: evil, Pack: evil, Dir: evil, Tool: evil, Argv: []string{evil, strings.Repeat("x", 2*control.MaxArgv), "last"},
		Covers: evil, Channel: evil, Policy: evil, Person: evil, Chat: evil, Client: evil, Void: &control.Voided{At: since, Changes: []string{evil}},
	}
	for _, inTerminal := range []bool{true, false} {
		g := &grants{all: []control.ChatGrant{{ID: "a"}, full}}
		d, _ := testDesk(t, func(o *Options) { o.Grants, o.Terminal = g, inTerminal })
		found, err := terminal.Find(t.Context(), d.o.RunDir)
		if err != nil || len(found.Servers) != 1 {
			t.Fatalf("Find() = %+v, %v", found, err)
		}
		s := found.Servers[0]
		e := safetext.Line(evil)
		want := control.ChatGrant{
			ID: e, Digest: e, Since: since, Kind: e, Pack: e, Dir: e, Tool: e, Argv: []string{e, "…"},
			Covers: e, Channel: e, Policy: e, Person: e, Chat: e, Client: e, Void: &control.Voided{At: since, Changes: []string{e}},
		}
		got, err := s.Grants(t.Context())
		if diff := cmp.Diff([]control.ChatGrant{{ID: "a"}, want}, got); diff != "" || err != nil {
			t.Errorf("Grants() = %v, and differs (-want +got):\n%s", err, diff)
		}
		if err := s.Revoke(t.Context(), "a"); err != nil || len(g.all) != 1 {
			t.Errorf("Revoke(a) = %v, and leaves %d", err, len(g.all))
		}
		if r, ok := errors.AsType[*terminal.RefusedError](s.Revoke(t.Context(), "a")); !ok || r.Status != 404 {
			t.Errorf("Revoke(a) again = %v, want that there is none", r)
		}
		g.err = errors.New("disk full")
		if r, ok := errors.AsType[*terminal.RefusedError](s.Revoke(t.Context(), evil)); !ok || r.Status != 500 || !strings.Contains(r.Message, "still holds") {
			t.Errorf("Revoke() where the log is full = %v, want that it holds", r)
		}
	}
}

// What asks for grants in another way gets nothing, and takes nothing back.
func TestGrantsRefuse(t *testing.T) {
	g := &grants{all: []control.ChatGrant{{ID: "a"}}}
	d, _ := testDesk(t, func(o *Options) { o.Grants = g })
	for _, c := range []struct {
		r      request
		status int
	}{
		{asTerminal(d, "GET /control/grants", "").with("Authorization", ""), 403},
		{asTerminal(d, "GET /control/grants", "").with("Origin", d.origin), 403},
		{asTerminal(d, "POST /control/grants", `{}`), 405},
		{asTerminal(d, "POST /control/revoke", `{"id":"a"}`).with("Authorization", ""), 403},
		{asTerminal(d, "POST /control/revoke", `{"id":"a"}`).with("Cookie", "x=y"), 403},
		{asTerminal(d, "POST /control/revoke", `{"id":"a","all":true}`), 400},
		{asTerminal(d, "POST /control/revoke", `{"id":"A"}`), 404},
		{asTerminal(d, "POST /control/revoke", `{}`), 404},
		{asTerminal(d, "GET /control/revoke", ""), 405},
		{asPage(d, "POST /control/revoke", `{"id":"a"}`), 403},
	} {
		if res, body := c.r.send(t, d); res.StatusCode != c.status || strings.Contains(body, `"id":"a"`) {
			t.Errorf("%s = %d %s, want %d", c.r.line, res.StatusCode, body, c.status)
		}
	}
	if len(g.all) != 1 {
		t.Error("the grant is gone")
	}
	d, _ = testDesk(t, nil) // nothing is ever allowed in its chats
	if res, body := asTerminal(d, "GET /control/grants", "").send(t, d); res.StatusCode != 200 || strings.TrimSpace(body) != `{"grants":[]}` {
		t.Errorf("without grants: %d %s", res.StatusCode, body)
	}
}
