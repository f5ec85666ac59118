package server

import "testing"

// Whose chat it is, is not the client's to say.
func TestRoomsTellThePersonApart(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	c := s.client(tokenAda)
	c.answer = decide("once")
	reply, header, err := c.exchange(t.Context(), map[string]any{"id": 1, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": map[string]any{"name": "x, for grace", "version": "1, for grace"},
	}})
	if err != nil || reply["error"] != nil {
		t.Fatal(reply, err)
	}
	c.session = header.Get("Mcp-Session-Id")
	c.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	found := false
	for _, r := range w.srv.Rooms(t.Context()) {
		if r.Person == "" {
			continue
		}
		found = true
		if r.Person != "ada" || r.Client != "x, for grace 1, for grace" {
			t.Errorf("the room is %q's, with the client %q", r.Person, r.Client)
		}
	}
	if !found || len(c.asked) != 1 || !says(c.asked[0], `for "ada", by the client's token`) || !says(c.asked[0], `a client that calls itself "x, for grace 1, for grace"`) {
		t.Errorf("found %v, asked %q", found, c.asked)
	}
}
