package httpd

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// A whole conversation over HTTP+SSE: handshake, a call with approval, a denial,
// list change, a bad message, another's connection, and the end.
func TestSSE(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	o := s.SSE(tokenAda)
	o.Answer = decide("once")
	o.Send(map[string]any{"id": 9, "method": "tools/list"})
	if m := o.Reply(); m["error"] == nil || m["id"] != 9.0 {
		t.Errorf("tools/list before initialize = %v, want an error", m)
	}
	o.Initialize()
	args := map[string]any{"pack_id": "triage"}
	if m := o.Call(1, "capability_packs_open_docs", args); code(t, m) != "" || len(o.Asked) != 1 || !says(o.Asked[0], `for: "ada", according`) {
		t.Errorf("open_docs = %v after %q", m, o.Asked)
	}
	o.Call(2, "capability_packs_enable_tools", args)
	if got := o.Heard(); len(got) != 1 || got[0] != "notifications/tools/list_changed" {
		t.Errorf("enable_tools sent %q, want that the list changed", got)
	}
	o.Answer = decide("deny")
	if m := o.Call("three", "capability_packs_open_docs", args); code(t, m) != "denied" || m["id"] != "three" {
		t.Errorf("a call that is denied = %v", m)
	}
	// The newer era, over the older transport.
	o.Send(map[string]any{"id": 4, "method": "tools/list", "params": withMeta(nil, false)})
	if m := o.Reply(); len(objects(result(t, m)["tools"])) != 7 {
		t.Errorf("tools/list of 2026-07-28 = %v", m)
	}
	for body, want := range map[string]int{"{": 400, `[]`: 400, `{"jsonrpc":"2.0","id":{},"method":"ping"}`: 400, strings.Repeat(" ", 9<<20): 413} {
		if code, _, text := o.Status(o.Request(t.Context(), "POST", o.Path, []byte(body))); code != want {
			t.Errorf("%.20q = %d %s, want %d", body, code, text, want)
		}
	}
	two := o.Path
	o.Path += "&sessionId=another"
	if code := o.Post(map[string]any{"id": 5, "method": "ping"}); code != 404 {
		t.Errorf("a message for two connections = %d, want 404", code)
	}
	o.Path = two
	// Another credential's connection does not exist.
	grace := s.SSE(tokenGrace)
	theirs := grace.Path
	grace.Path = o.Path
	if code := grace.Post(map[string]any{"id": 5, "method": "ping"}); code != 404 {
		t.Errorf("a message for another's connection = %d, want 404", code)
	}
	grace.Path = theirs
	grace.Initialize()
	o.Send(map[string]any{"id": 6, "method": "ping"})
	if m := o.Reply(); m["id"] != 6.0 {
		t.Errorf("ping = %v", m)
	}
	// It ends with its stream.
	chats := w.chats()
	o.Stream.Stop()
	until(t, "its chat has ended", func() bool { return w.chats() == chats-1 })
	if code := o.Post(map[string]any{"id": 7, "method": "ping"}); code != 404 {
		t.Errorf("a message after the stream's end = %d, want 404", code)
	}
}

// The bound of a group holds over HTTP+SSE, too, and the call of somebody who left takes
// no place.
func TestSSEOfAGroup(t *testing.T) {
	s := newSite(t, newWorld(t, triage), func(o *Options) {
		for i := range o.Credentials {
			o.Credentials[i].Groups = []string{"sre", "sre", "staff"}
		}
		o.CallsOf.Group = map[string]int64{"sre": 1}
	})
	grace, ada := s.SSE(tokenGrace), s.SSE(tokenAda)
	ada.Answer = decide("once") // her client shows questions; this one is never answered
	ada.Initialize()
	ping := func() (int, string) {
		code, header, _ := grace.Status(grace.Request(t.Context(), "POST", grace.Path, []byte(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)))
		return code, header.Get("Retry-After")
	}
	until(t, "the group has room", func() bool { code, _ := ping(); return code == 202 })
	until(t, "ada's call begins", func() bool {
		return ada.Post(map[string]any{"id": 1, "method": "tools/call", "params": map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}}) == 202
	})
	for m := ada.Stream.Next(); m["method"] != "elicitation/create"; m = ada.Stream.Next() {
		if m == nil || m["id"] != nil && m["method"] == nil {
			t.Fatalf("ada's call ended with %v, want a question", m)
		}
	}
	if code, retry := ping(); code != 429 || retry == "" { // ada's call waits for an answer
		t.Errorf("a request of grace = %d, Retry-After %q, want 429 with it", code, retry)
	}
	ada.Stream.Stop()
	until(t, "the group has room again", func() bool { code, _ := ping(); return code == 202 })
}

// Behind a proxy that strips a path, the client is told the whole path.
func TestSSEBehindProxy(t *testing.T) {
	s := newSite(t, newWorld(t, triage), func(o *Options) { o.PublicURL = "https://packs.example.com/team%20a/" })
	for host, want := range map[string]string{"packs.example.com": "/team%20a/message?", "packs.example.com:443": "/team%20a/message?", "localhost": "/message?"} {
		c := s.Client(tokenAda)
		ctx, stop := context.WithCancel(t.Context())
		r := c.Request(ctx, "GET", "/sse", nil)
		r.Host = host
		resp := c.Do(r)
		_ = servertest.Events(resp.Body, func(_, data string) bool {
			if !strings.HasPrefix(data, want) {
				t.Errorf("for %s, the endpoint is %q, want %q", host, data, want)
			}
			return false
		})
		stop()
		resp.Body.Close()
	}
}

// The ways to cancel a call of HTTP+SSE.
func TestSSECancel(t *testing.T) {
	needShell(t)
	for _, by := range []string{"a notification", "the stream's end", "the server's end"} {
		w := newWorld(t, hold)
		s := newSite(t, w)
		o := s.SSE(tokenAda)
		o.Answer = decide("chat")
		o.Initialize()
		o.Send(map[string]any{"id": 0, "method": "tools/call", "params": servertest.HoldParams()})
		go func() {
			if m := o.Stream.Next(); m["method"] == "elicitation/create" {
				o.Post(map[string]any{"id": m["id"], "result": decide("chat")("", nil)})
			}
		}()
		pid := s.w.pid("ada", "sse")
		other := s.SSE(tokenAda)
		other.Initialize()
		other.Send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": 0}})
		other.Send(map[string]any{"id": 1, "method": "ping"})
		other.Reply()
		if !alive(t, pid) {
			t.Fatal("another connection cancelled the call")
		}
		switch by {
		case "a notification":
			o.Send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": 0}})
		case "the stream's end":
			o.Stream.Stop()
		default:
			s.http.Close()
			o.Stream.Drain()
		}
		w.awaitLog("run.end")
		if alive(t, pid) {
			t.Errorf("%s: the program still runs", by)
		}
	}
}

// A question of a closed connection is withdrawn.
func TestSSEQuestion(t *testing.T) {
	w := newWorld(t, triage, everywhere(20*time.Second))
	s := newSite(t, w)
	o := s.SSE(tokenAda)
	o.Initialize()
	o.Send(map[string]any{"id": 1, "method": "tools/call", "params": map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}})
	w.pending(1)
	o.Stream.Stop()
	w.pending(0)
}

// A body of 100 MB is refused, announced or not, without being held.
func TestSSEHugeBody(t *testing.T) {
	s := newSite(t, newWorld(t, triage))
	o := s.SSE(tokenAda)
	o.Initialize()
	for _, announced := range []int64{100 << 20, -1} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := o.Request(t.Context(), "POST", o.Path, nil)
		r.Body, r.ContentLength = io.NopCloser(&servertest.Repeat{B: 'x', N: 100 << 20}), announced
		if resp, err := s.Transport.RoundTrip(r); err == nil { // the connection may break first
			resp.Body.Close()
			if resp.StatusCode != 413 {
				t.Errorf("100 MB, announced as %d: %d, want 413", announced, resp.StatusCode)
			}
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("%d MiB were allocated for a body that is refused", used>>20)
		}
		o.Send(map[string]any{"id": 1, "method": "ping"})
		if m := o.Reply(); m["id"] != 1.0 {
			t.Errorf("ping = %v", m)
		}
	}
}
