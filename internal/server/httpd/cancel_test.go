package httpd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// Every way to cancel a call ends its program. A cancellation by another
// credential, or with another id, ends nothing.
func TestHTTPCancel(t *testing.T) {
	needShell(t)
	cancelled := func(id any) map[string]any { return map[string]any{"requestId": id} }
	for name, x := range map[string]struct {
		modern bool
		cancel func(t *testing.T, s *site, c *servertest.Client, leave context.CancelFunc)
	}{
		"older, a notification": {false, func(t *testing.T, s *site, c *servertest.Client, _ context.CancelFunc) {
			pid := s.w.pid("ada", "http")
			same, other := s.Older(tokenAda, decide("chat")), s.Older(tokenGrace, nil)
			modern := s.Newer(tokenAda, nil)
			for _, c := range []*servertest.Client{same, other, modern} {
				c.Notify("notifications/cancelled", cancelled(0))
			}
			for _, id := range []any{"0", 1, nil, "", []any{0}, 0.5} {
				c.Notify("notifications/cancelled", cancelled(id))
			}
			c.Notify("notifications/cancelled", nil)
			c.Ask("ping", nil)
			if !alive(t, pid) {
				t.Fatal("the program ended although its call was not cancelled")
			}
			c.Notify("notifications/cancelled", cancelled(0))
			c.Notify("notifications/cancelled", cancelled(0))
		}},
		"older, the stream is closed": {false, func(_ *testing.T, _ *site, _ *servertest.Client, leave context.CancelFunc) { leave() }},
		"older, the session ends": {false, func(t *testing.T, _ *site, c *servertest.Client, _ context.CancelFunc) {
			if code, _, _ := c.Status(c.Request(t.Context(), "DELETE", "/mcp", nil)); code != 204 {
				t.Errorf("DELETE = %d, want 204", code)
			}
		}},
		"newer, the stream is closed": {true, func(t *testing.T, s *site, c *servertest.Client, leave context.CancelFunc) {
			pid := s.w.pid("ada", "http")
			// The same id, from the same credential in the other era and from
			// another credential, cancels nothing.
			s.Newer(tokenAda, nil).Notify("notifications/cancelled", withMeta(cancelled(0), false))
			s.Newer(tokenGrace, nil).Notify("notifications/cancelled", withMeta(cancelled(0), false))
			c.Ask("tools/list", nil)
			if !alive(t, pid) {
				t.Fatal("a notification of the newer era cancelled a call")
			}
			leave()
		}},
		"the server ends": {true, func(_ *testing.T, s *site, _ *servertest.Client, _ context.CancelFunc) { s.http.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hold)
			s := newSite(t, w)
			c := s.Newer(tokenAda, decide("chat"))
			if !x.modern {
				c = s.Older(tokenAda, decide("chat"))
				c.NextID = 0
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			done := make(chan string, 1)
			go func() {
				reply, err := c.Try(ctx, "tools/call", servertest.HoldParams())
				done <- fmt.Sprint(reply, err)
			}()
			pid := s.w.pid("ada", "http")
			x.cancel(t, s, c, leave)
			w.awaitLog("run.end")
			if alive(t, pid) {
				t.Error("the program of a cancelled call still runs")
			}
			select {
			case got := <-done:
				if ended := strings.HasPrefix(got, "map[]") || strings.Contains(got, "cancelled"); !ended {
					t.Errorf("the cancelled request got %s", got)
				}
			case <-time.After(20 * time.Second):
				t.Error("the cancelled request does not end")
			}
			for _, e := range w.entries() {
				if e.Event == "run.end" && e.Cause != "cancelled" {
					t.Errorf("the log says that the run ended by %q, want cancelled", e.Cause)
				}
			}
		})
	}
}

// If a call's client leaves while a person is being asked, the question is
// withdrawn from every channel, and a later answer has no effect.
func TestHTTPCancelQuestion(t *testing.T) {
	open := map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}
	for _, modern := range []bool{false, true} {
		for _, elicits := range []bool{false, true} {
			if modern && elicits {
				continue // the question is in the response, and nothing waits
			}
			w := newWorld(t, triage, everywhere(20*time.Second))
			s := newSite(t, w)
			var answer func(string, map[string]any) map[string]any
			if elicits {
				answer = func(string, map[string]any) map[string]any { return nil }
			}
			c := s.Newer(tokenAda, answer)
			if !modern {
				c = s.Older(tokenAda, answer)
			}
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := c.Try(ctx, "tools/call", open)
				done <- err
			}()
			p := w.pending(1)[0]
			if p.Person != "ada" {
				t.Errorf("the call is of %q, want ada", p.Person)
			}
			leave()
			w.pending(0)
			<-done
			if _, err := w.gate.Decide(p.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err == nil {
				t.Error("a call whose client went away can still be allowed")
			}
			w.awaitLog("decision")
			if e := w.entries(); len(e) != 1 || e[0].Decision != "deny" {
				t.Errorf("the log has %+v, want one denial", e)
			}
			// A notification also withdraws the question on the stream.
			if elicits {
				c.NextID = 0
				go func() {
					reply, err := c.Try(t.Context(), "tools/call", open)
					if err == nil && reply != nil {
						err = fmt.Errorf("it is answered with %v", reply)
					}
					done <- err
				}()
				w.pending(1)
				c.Notify("notifications/cancelled", map[string]any{"requestId": 0})
				w.pending(0)
				if err := <-done; err != nil {
					t.Errorf("a cancelled call: %v", err)
				}
				if got := c.Heard(); !slices.Equal(got, []string{"notifications/cancelled"}) {
					t.Errorf("its stream has %q, want the question withdrawn", got)
				}
			}
		}
	}
}

// A client that does not accept a stream cannot be asked on one, whatever it
// declared.
func TestHTTPJSONOnly(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	c := s.Older(tokenAda, func(string, map[string]any) map[string]any {
		t.Error("it was asked")
		return nil
	})
	r := c.Request(t.Context(), "POST", "/mcp", c.Encode(map[string]any{"id": 7, "method": "tools/call", "params": map[string]any{
		"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
	}}))
	r.Header.Set("Accept", "application/json")
	code, h, text := c.Status(r)
	if code != 200 || h.Get("Content-Type") != "application/json" || !strings.Contains(text, `"denied"`) || !strings.Contains(text, `"id":7`) {
		t.Errorf("the call = %d %s, want a denial as JSON", code, text)
	}
	// A client that accepts only a stream gets one.
	r = c.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
	r.Header.Set("Accept", "text/event-stream")
	if code, h, text := c.Status(r); code != 200 || h.Get("Content-Type") != "text/event-stream" || text != "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n" {
		t.Errorf("ping as a stream = %d %q", code, text)
	}
}

// A slow answer becomes a stream with heartbeats.
func TestHTTPKeepAlive(t *testing.T) {
	w := newWorld(t, triage, everywhere(20*time.Second))
	s := newSite(t, w)
	s.http.beat = time.Millisecond
	c := s.Older(tokenAda, nil)
	resp := c.Do(c.Request(t.Context(), "POST", "/mcp", c.Encode(map[string]any{"id": 1, "method": "tools/call", "params": map[string]any{
		"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
	}})))
	defer resp.Body.Close()
	first := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != ": \n\n" {
		t.Errorf("the stream begins with %q, %v, want a comment", first, err)
	}
	w.decide(w.pending(1)[0].Code, queue.Once)
	if rest, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(rest), "# Triage") {
		t.Errorf("the stream ends with %q, %v, want the reply", rest, err)
	}
}

// Clients that do not read, or do not finish sending, do not affect other
// clients or keep the server from ending.
func TestHTTPSlowClients(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	s.http.sends, s.http.reads, s.http.beat = 500*time.Millisecond, 500*time.Millisecond, time.Millisecond
	addr := strings.TrimPrefix(s.Server.URL, "http://")
	dial := func(head string) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, head)
		return c
	}
	const auth = "Host: localhost\r\nAuthorization: Bearer " + tokenAda + "\r\nContent-Type: application/json\r\n"
	// A body that never arrives.
	c := dial("POST /mcp HTTP/1.1\r\n" + auth + "Content-Length: 100\r\n\r\n{")
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("a body that does not come: %q, %v, want 408", got, err)
	}
	// Streams that the client does not read: with a heartbeat every millisecond,
	// the buffers in between fill up. A small buffer makes that quick.
	good := s.Older(tokenAda, decide("once"))
	for range 10 {
		c := dial("GET /mcp HTTP/1.1\r\n" + auth + "Mcp-Session-Id: " + good.Session + "\r\nAccept: text/event-stream\r\n\r\n")
		_ = c.(*net.TCPConn).SetReadBuffer(1)
	}
	good.Ask("ping", nil)
	good.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if got := len(s.http.sessions.byID[good.Session].news.waiting); got > maxStreams {
		t.Errorf("%d streams wait for news, want at most %d", got, maxStreams)
	}
	began := time.Now()
	s.http.Close()
	if took := time.Since(began); took > wire.EndTime+2*wire.FlushTime {
		t.Errorf("Close took %s", took)
	}
}

// A closed server leaves nothing behind.
func TestHTTPClose(t *testing.T) {
	needShell(t)
	w := newWorld(t, hold+triage, everywhere(20*time.Second))
	before := runtime.NumGoroutine()
	s := newSite(t, w)
	older, newer := s.Older(tokenAda, decide("chat")), s.Newer(tokenGrace, decide("chat"))
	streams := []*servertest.Stream{
		older.Open("GET", "/mcp", nil), s.Client(tokenAda).Open("GET", "/sse", nil),
		newer.Open("POST", "/mcp", map[string]any{"id": 1, "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": map[string]any{"toolsListChanged": true}}, false)}),
	}
	done := make(chan error, 3)
	for _, c := range []*servertest.Client{older, newer} {
		go func() {
			_, err := c.Try(context.Background(), "tools/call", servertest.HoldParams())
			done <- err
		}()
	}
	silent := s.Older(tokenGrace, nil)
	go func() {
		_, err := silent.Try(context.Background(), "tools/call", map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}})
		done <- err
	}()
	until(t, "two programs run", func() bool {
		n := 0
		for _, e := range w.entries() {
			if e.Event == "run.start" {
				n++
			}
		}
		return n == 2
	})
	w.pending(1)
	pids := []string{s.w.pid("ada", "http"), s.w.pid("grace", "http")}
	s.http.Close()
	for range 3 {
		if err := <-done; err != nil {
			t.Errorf("a call that was under way got no answer: %v", err)
		}
	}
	for _, l := range streams {
		l.Drain()
	}
	for _, pid := range pids {
		if alive(t, pid) {
			t.Error("a program still runs")
		}
	}
	if got := w.chats(); got != 0 {
		t.Errorf("%d chats are left", got)
	}
	if code, _, _ := older.Status(older.Request(t.Context(), "GET", "/healthz", nil)); code != http.StatusServiceUnavailable {
		t.Errorf("/healthz of a server that ended = %d, want 503", code)
	}
	s.http.Close() // again
	s.Transport.CloseIdleConnections()
	s.Server.Close()
	until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	starts, ends := 0, 0
	for _, e := range w.entries() {
		switch e.Event {
		case "run.start":
			starts++
		case "run.end":
			ends++
		}
	}
	if starts != ends {
		t.Errorf("the log has %d starts and %d ends of runs", starts, ends)
	}
}
