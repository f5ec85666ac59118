package server

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNotUTF8(t *testing.T) {
	w := newWorld(t, "")
	got := serveAll(t, w.srv, strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}\n"+ping))
	if len(got) != 2 || !strings.Contains(got[0], "-32700") || !strings.Contains(got[0], "the message is not UTF-8") || !strings.Contains(got[1], `"result"`) {
		t.Errorf("the server wrote %q, want an error that says so, and the next reply", got)
	}
}

// The refusal of a line that is too long has the request's id, if the beginning of
// the line clearly shows it.
func TestLongLineID(t *testing.T) {
	w := newWorld(t, "", limited(Limits{Request: 9000}))
	long := strings.Repeat("x", 10_000)
	for _, c := range []struct{ line, id string }{
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"` + long + `"}}`, `7`},
		{`{"jsonrpc":"2.0","method":"tools/call","id":"\u0041","params":{"x":"` + long + `"}}`, `"\u0041"`},
		{`{"params":{"id":1},"id":-3,"method":"x","y":"` + long + `"}`, `-3`},
		{"\xef\xbb\xbf" + ` {"id":7,"method":"x","params":"` + long + `"}`, `7`},
		// Unclear cases: behind a long part, of another type, in an answer, or cut
		// off.
		{`{"jsonrpc":"2.0","method":"x","params":{"id":1,"x":"` + long + `"},"id":7}`, `null`},
		{`{"id":{},"method":"x","params":"` + long + `"}`, `null`},
		{`{"id":7,"result":"` + long + `"}`, `null`},
		{`{"id":7,"result":{},"method":"x","params":"` + long + `"}`, `null`},
		{`{"id":7,"x":"` + long + `"}`, `null`},
		{`{"method":"x","id":` + strings.Repeat(" ", maxHead-20) + `123` + long + `}`, `null`},
		{`[{"id":7,"method":"x","params":"` + long + `"}]`, `null`},
		{long, `null`},
	} {
		got := serveAll(t, w.srv, strings.NewReader(c.line))
		if want := fmt.Sprintf(`"id":%s,`, c.id); len(got) != 1 || !strings.Contains(got[0], want) || !strings.Contains(got[0], "larger than 9000 bytes") {
			t.Errorf("for %.60s… the server wrote %q, want the refusal with %s", c.line, got, want)
		}
	}
}

// The requests in flight may only have so many bytes together.
func TestTooManyBytes(t *testing.T) {
	w := newWorld(t, triage, func(s *setup) { s.gate.Wait = 5 * time.Minute })
	w.answer = func(string, map[string]any) map[string]any { return nil }
	w.initialize()
	long := strings.Repeat("x", 7<<20)
	call := func(id int) {
		w.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"capability_packs_open_docs","arguments":{"pack_id":"triage"}},"x":"%s"}`, id, long))
	}
	next := func() map[string]any { return <-w.lines }
	var asked []any
	for i := range 4 {
		call(1000 + i)
		m := next()
		if m["method"] != "elicitation/create" {
			t.Fatalf("call %d = %.200v, want a question", i+1, m)
		}
		asked = append(asked, m["id"])
	}
	call(2000)
	if m := next(); m["id"] != 2000.0 || !strings.Contains(fmt.Sprint(m["error"]), "too many requests are under way") {
		t.Errorf("a fifth call of 7 MiB = %.200v, want that too many are under way", m)
	}
	w.send(map[string]any{"id": asked[0], "result": decide("once")("", nil)})
	if m := next(); m["result"] == nil {
		t.Errorf("the first call = %.200v, want a result", m)
	}
	// Its bytes are free again once the call is cleaned up.
	for tries := 0; ; tries++ {
		call(3000 + tries)
		if m := next(); m["method"] == "elicitation/create" {
			break
		}
		if tries == 100 {
			t.Fatal("the bytes of a call that ended are not free")
		}
	}
}
