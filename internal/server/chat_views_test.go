package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// The client does not decide whose chat it is.
func TestRoomsTellThePersonApart(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	c := s.Client(tokenAda)
	c.Answer = decide("once")
	reply, header, err := c.Exchange(t.Context(), map[string]any{"id": 1, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": map[string]any{"name": "x, for grace", "version": "1, for grace"},
	}})
	if err != nil || reply["error"] != nil {
		t.Fatal(reply, err)
	}
	c.Session = header.Get("Mcp-Session-Id")
	c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	found := false
	for _, r := range w.srv.ChatViews(t.Context()) {
		if r.Person == "" {
			continue
		}
		found = true
		if r.Person != "ada" || r.Client != "x, for grace 1, for grace" {
			t.Errorf("the room is %q's, with the client %q", r.Person, r.Client)
		}
	}
	if !found || len(c.Asked) != 1 || !says(c.Asked[0], `for: "ada", according to the client's token`) || !says(c.Asked[0], `a client that calls itself "x, for grace 1, for grace"`) {
		t.Errorf("found %v, asked %q", found, c.Asked)
	}
}

// What a client says about itself is bounded on every transport: too much of it is
// refused, and of a long name only the beginning is kept, shown and logged.
func TestClientSaysTooMuch(t *testing.T) {
	params := func(name string, experimental any) map[string]any {
		return map[string]any{
			"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}, "experimental": map[string]any{"x": experimental}},
			"clientInfo": map[string]any{"name": name, "version": name},
		}
	}
	meta := func(name string, experimental any) map[string]any {
		p := withMeta(nil, true)
		m := p["_meta"].(map[string]any)
		m["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": name, "version": name}
		m["io.modelcontextprotocol/clientCapabilities"] = map[string]any{"experimental": map[string]any{"x": experimental}}
		return p
	}
	large := strings.Repeat("n", maxSaid)
	long := strings.Repeat("é", maxClientName-10) + ourToken + strings.Repeat("é", 50)
	w := newWorld(t, triage, func(s *setup) { s.server.Tokens = []string{ourToken} })
	s := newSite(t, w)
	sse, web := s.SSE(tokenAda), s.Client(tokenAda)
	transports := map[string]func(m map[string]any) map[string]any{
		"stdio": func(m map[string]any) map[string]any { w.send(m); return w.receive() },
		"sse":   func(m map[string]any) map[string]any { sse.Send(m); return sse.Reply() },
		"http": func(m map[string]any) map[string]any {
			web.Modern = m["method"] != "initialize"
			reply, _, err := web.Exchange(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			return reply
		},
	}
	for name, ask := range transports {
		for what, x := range map[string]struct {
			method string
			params map[string]any
			want   any // code of the error
		}{
			"a name":              {"initialize", params(large, nil), -32600.0},
			"capabilities":        {"initialize", params("x", large), -32600.0},
			"a name of a request": {"skills/list", meta(large, nil), -32602.0},
			"half of it each":     {"skills/list", meta("x", large[:maxSaid-40]), -32602.0},
			"just a long one":     {"skills/list", meta(long, nil), nil},
			"just large":          {"skills/list", meta("x", large[:maxSaid/2]), nil},
		} {
			reply := ask(map[string]any{"id": 1, "method": x.method, "params": x.params})
			e, _ := reply["error"].(map[string]any)
			if e["code"] != x.want || x.want == nil && reply["result"] == nil {
				t.Errorf("%s: %s got %.200v, want the error %v", name, what, reply, x.want)
			}
		}
		if reply := ask(map[string]any{"id": 1, "method": "initialize", "params": params(long, large[:maxSaid/2])}); reply["result"] == nil {
			t.Errorf("%s: a long name got %.200v", name, reply)
		}
	}
	views := w.srv.ChatViews(t.Context())
	if len(views) != 4 {
		t.Errorf("there are %d chats, want one of each transport, and two over HTTP: a client that was refused has none", len(views))
	}
	for _, v := range views {
		if n := utf8.RuneCountInString(v.Client); n > 2*maxClientName+3 || strings.Contains(v.Client, ourToken[:4]) {
			t.Errorf("%q is shown, want %d characters of the name and of the version, without the token", v.Client, maxClientName)
		}
	}
	for _, e := range w.entries() {
		if utf8.RuneCountInString(e.Client) > 2*maxClientName+3 {
			t.Errorf("the log has the client %q", e.Client)
		}
	}
	if len(w.entries()) < 2*len(transports) {
		t.Errorf("the log has %d entries, want one for each list", len(w.entries()))
	}
}

// The page and the list show the same problems of a pack: of tools in files, of tools
// in an entry document, and that the pack cannot be read.
func TestRoomsHaveTheProblemsOfTheList(t *testing.T) {
	w := newWorld(t, pack("fine", "F.")+pack("gone", "G.")+pack("files", "F.")+"-- files/tools.json --\n{\n"+
		pack("prose", "P.")+"\n### bad_tool\n\nSays it.\n\n#### Command\n\n```\necho {{x}} {{nobody}}\n```\n\n#### Parameters\n\n"+
		"| Name | Type | Required | Description |\n|---|---|---|---|\n| x | string | yes | what |\n")
	w.initialize()
	if err := os.RemoveAll(filepath.Join(w.root, "gone")); err != nil {
		t.Fatal(err)
	}
	listed, shown := make(map[string][]string), make(map[string][]string)
	for _, p := range objects(w.ok("capability_packs_list", nil)["packs"]) {
		listed[p["pack_id"].(string)] = texts(p["problems"])
	}
	for _, p := range w.srv.ChatViews(t.Context())[0].Packs {
		shown[p.ID] = p.Problems
	}
	if diff := cmp.Diff(listed, shown, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("problems (-list +page):\n%s", diff)
	}
	for id, want := range map[string]bool{"fine": false, "gone": true, "files": true, "prose": true} {
		if got, ok := shown[id]; !ok || len(got) > 0 != want {
			t.Errorf("the page has %q of %s, want problems: %v", got, id, want)
		}
	}
}

// The answer that a pack may be used belongs to one person: the same server asks
// again for another person's token.
func TestUseOfAPackIsAllowedPerPerson(t *testing.T) {
	w := newWorld(t, triage, func(s *setup) { s.gate.Grants, s.gate.Policy = new(kept), policy.Balanced })
	s := newSite(t, w)
	ada, grace := s.Older(tokenAda, decide("always")), s.Older(tokenGrace, decide("once"))
	for want, c := range map[int]*servertest.Client{1: ada, 3: grace} {
		c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
		c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
		c.OK("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
		if len(c.Asked) != want {
			t.Errorf("asked %d times, want %d: %q", len(c.Asked), want, c.Asked)
		}
	}
}
