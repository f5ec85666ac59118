package server

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// An old is a client of HTTP+SSE.
type old struct {
	*web
	stream *listening
	path   string // where it posts
}

// old connects a client of HTTP+SSE.
func (s *site) old(token string) *old {
	s.w.t.Helper()
	o := &old{web: s.client(token)}
	o.stream = o.open("GET", "/sse", nil)
	first := o.stream.next()
	path, _ := first["data"].(string)
	if first["event"] != "endpoint" || !strings.HasPrefix(path, "/message?sessionId=") {
		s.w.t.Fatalf("the stream begins with %v, want the endpoint", first)
	}
	o.path = path
	return o
}

// post posts a message, and returns what became of it.
func (o *old) post(m map[string]any) int {
	o.t.Helper()
	code, _, _ := o.status(o.request(o.t.Context(), "POST", o.path, o.encode(m)))
	return code
}

func (o *old) send(m map[string]any) {
	o.t.Helper()
	if code := o.post(m); code != 202 {
		o.t.Fatalf("%v = %d, want 202", m, code)
	}
}

// reply returns the next message that is no notification, with questions
// answered.
func (o *old) reply() map[string]any {
	o.t.Helper()
	for {
		m := o.stream.next()
		switch {
		case m == nil:
			o.t.Fatal("the stream ended")
		case m["method"] == "elicitation/create":
			o.asked = append(o.asked, m["params"].(map[string]any)["message"].(string))
			o.send(map[string]any{"id": m["id"], "result": o.answer("", nil)})
		case m["method"] != nil:
			o.notes = append(o.notes, m)
		default:
			return m
		}
	}
}

func (o *old) initialize() {
	o.t.Helper()
	caps := map[string]any{}
	if o.answer != nil {
		caps["elicitation"] = map[string]any{}
	}
	o.send(map[string]any{"id": 0, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2024-11-05", "capabilities": caps, "clientInfo": map[string]any{"name": "old", "version": "1"},
	}})
	if m := o.reply(); result(o.t, m)["protocolVersion"] != "2024-11-05" || m["id"] != 0.0 {
		o.t.Errorf("initialize = %v", m)
	}
	o.send(map[string]any{"method": "notifications/initialized"})
}

func (o *old) call(id any, name string, args map[string]any) map[string]any {
	o.t.Helper()
	o.send(map[string]any{"id": id, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	return o.reply()
}

// The whole way over HTTP+SSE: handshake, a call with approval, a denial, list
// change, a bad message, another's connection, and the end.
func TestSSE(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	o := s.old(tokenAda)
	o.answer = decide("once")
	o.send(map[string]any{"id": 9, "method": "tools/list"})
	if m := o.reply(); m["error"] == nil || m["id"] != 9.0 {
		t.Errorf("tools/list before initialize = %v, want an error", m)
	}
	o.initialize()
	args := map[string]any{"pack_id": "triage"}
	if m := o.call(1, "capability_packs_open_docs", args); code(t, m) != "" || len(o.asked) != 1 || !says(o.asked[0], `for "ada", by`) {
		t.Errorf("open_docs = %v after %q", m, o.asked)
	}
	o.call(2, "capability_packs_enable_tools", args)
	if got := o.heard(); len(got) != 1 || got[0] != "notifications/tools/list_changed" {
		t.Errorf("enable_tools sent %q, want that the list changed", got)
	}
	o.answer = decide("deny")
	if m := o.call("three", "capability_packs_open_docs", args); code(t, m) != "denied" || m["id"] != "three" {
		t.Errorf("a call that is denied = %v", m)
	}
	// The newer era, over the older transport.
	o.send(map[string]any{"id": 4, "method": "tools/list", "params": withMeta(nil, false)})
	if m := o.reply(); len(objects(result(t, m)["tools"])) != 7 {
		t.Errorf("tools/list of 2026-07-28 = %v", m)
	}
	for body, want := range map[string]int{"{": 400, `[]`: 400, `{"jsonrpc":"2.0","id":{},"method":"ping"}`: 400, strings.Repeat(" ", 9<<20): 413} {
		if code, _, text := o.status(o.request(t.Context(), "POST", o.path, []byte(body))); code != want {
			t.Errorf("%.20q = %d %s, want %d", body, code, text, want)
		}
	}
	two := o.path
	o.path += "&sessionId=another"
	if code := o.post(map[string]any{"id": 5, "method": "ping"}); code != 404 {
		t.Errorf("a message for two connections = %d, want 404", code)
	}
	o.path = two
	// Another's connection is none.
	grace := s.old(tokenGrace)
	theirs := grace.path
	grace.path = o.path
	if code := grace.post(map[string]any{"id": 5, "method": "ping"}); code != 404 {
		t.Errorf("a message for another's connection = %d, want 404", code)
	}
	grace.path = theirs
	grace.initialize()
	o.send(map[string]any{"id": 6, "method": "ping"})
	if m := o.reply(); m["id"] != 6.0 {
		t.Errorf("ping = %v", m)
	}
	// It ends with its stream.
	chats := len(w.srv.everyChat())
	o.stream.stop()
	s.until("its chat has ended", func() bool { return len(w.srv.everyChat()) == chats-1 })
	if code := o.post(map[string]any{"id": 7, "method": "ping"}); code != 404 {
		t.Errorf("a message after the stream's end = %d, want 404", code)
	}
}

// Behind a proxy that takes a path off, the client is told the whole one.
func TestSSEBehindProxy(t *testing.T) {
	s := newSite(t, newWorld(t, triage), func(o *HTTPOptions) { o.PublicURL = "https://packs.example.com/team%20a/" })
	for host, want := range map[string]string{"packs.example.com": "/team%20a/message?", "packs.example.com:443": "/team%20a/message?", "localhost": "/message?"} {
		c := s.client(tokenAda)
		ctx, stop := context.WithCancel(t.Context())
		r := c.request(ctx, "GET", "/sse", nil)
		r.Host = host
		resp := c.do(r)
		_ = events(resp.Body, func(_, data string) bool {
			if !strings.HasPrefix(data, want) {
				t.Errorf("for %s, the endpoint is %q, want %q", host, data, want)
			}
			return false
		})
		stop()
		resp.Body.Close()
	}
}

// What cancels a call of HTTP+SSE.
func TestSSECancel(t *testing.T) {
	needShell(t)
	for _, by := range []string{"a notification", "the stream's end", "the server's end"} {
		w := newWorld(t, hold)
		s := newSite(t, w)
		o := s.old(tokenAda)
		o.answer = decide("chat")
		o.initialize()
		o.send(map[string]any{"id": 0, "method": "tools/call", "params": holdParams()})
		go func() {
			if m := o.stream.next(); m["method"] == "elicitation/create" {
				o.post(map[string]any{"id": m["id"], "result": decide("chat")("", nil)})
			}
		}()
		pid := s.pid("ada", "sse")
		other := s.old(tokenAda)
		other.initialize()
		other.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": 0}})
		other.send(map[string]any{"id": 1, "method": "ping"})
		other.reply()
		if !alive(t, pid) {
			t.Fatal("another connection cancelled the call")
		}
		switch by {
		case "a notification":
			o.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": 0}})
		case "the stream's end":
			o.stream.stop()
		default:
			s.http.Close()
			o.stream.drain()
		}
		w.awaitLog("run.end")
		if alive(t, pid) {
			t.Errorf("%s: the program still runs", by)
		}
	}
}

// A question of a connection that closed is withdrawn.
func TestSSEQuestion(t *testing.T) {
	w := newWorld(t, triage, everywhere(20*time.Second))
	s := newSite(t, w)
	o := s.old(tokenAda)
	o.initialize()
	o.send(map[string]any{"id": 1, "method": "tools/call", "params": map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}})
	w.pending(1)
	o.stream.stop()
	w.pending(0)
}

// A body of 100 MB is refused, announced or not, without being held.
func TestSSEHugeBody(t *testing.T) {
	s := newSite(t, newWorld(t, triage))
	o := s.old(tokenAda)
	o.initialize()
	for _, announced := range []int64{100 << 20, -1} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := o.request(t.Context(), "POST", o.path, nil)
		r.Body, r.ContentLength = io.NopCloser(&repeat{'x', 100 << 20}), announced
		if resp, err := s.tr.RoundTrip(r); err == nil { // the connection may break first
			resp.Body.Close()
			if resp.StatusCode != 413 {
				t.Errorf("100 MB, announced as %d: %d, want 413", announced, resp.StatusCode)
			}
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%d MiB were allocated for a body that is refused", used>>20)
		}
		o.send(map[string]any{"id": 1, "method": "ping"})
		if m := o.reply(); m["id"] != 1.0 {
			t.Errorf("ping = %v", m)
		}
	}
}
