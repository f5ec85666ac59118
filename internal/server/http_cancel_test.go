package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// hold is a pack whose program runs until a file "go" is in its workspace.
const hold = `
-- hold/SKILL.md --
---
name: hold
description: Runs until it is let go.
---
-- hold/hold.sh* --
#!/bin/sh
echo $$ > pid.new && mv pid.new pid
while ! [ -e go ]; do sleep 0.02; done
echo let go
`

// holdParams are those of a call of it.
func holdParams() map[string]any {
	return map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{"pack_id": "hold", "command": "./hold.sh"}}
}

// pid waits until a program of a person's runs in a chat of a transport.
func (s *site) pid(person, transport string) (pid string) {
	s.w.t.Helper()
	s.until("a program of "+person+" runs", func() bool {
		for _, c := range s.w.srv.everyChat() {
			if c.person != person || !strings.HasPrefix(c.id, transport) {
				continue
			}
			if data, err := os.ReadFile(filepath.Join(c.workspace, "pid")); err == nil {
				pid = strings.TrimSpace(string(data))
			}
		}
		return pid != ""
	})
	return pid
}

// Every way to cancel a call ends its program; what is somebody else's, or an
// id that is not of the call, ends nothing.
func TestHTTPCancel(t *testing.T) {
	needShell(t)
	cancelled := func(id any) map[string]any { return map[string]any{"requestId": id} }
	for name, x := range map[string]struct {
		modern bool
		cancel func(t *testing.T, s *site, c *web, leave context.CancelFunc)
	}{
		"older, a notification": {false, func(t *testing.T, s *site, c *web, _ context.CancelFunc) {
			pid := s.pid("ada", "http")
			same, other := s.older(tokenAda, decide("chat")), s.older(tokenGrace, nil)
			modern := s.newer(tokenAda, nil)
			for _, c := range []*web{same, other, modern} {
				c.notify("notifications/cancelled", cancelled(0))
			}
			for _, id := range []any{"0", 1, nil, "", []any{0}, 0.5} {
				c.notify("notifications/cancelled", cancelled(id))
			}
			c.notify("notifications/cancelled", nil)
			c.ask("ping", nil)
			if !alive(t, pid) {
				t.Fatal("the program ended although its call was not cancelled")
			}
			c.notify("notifications/cancelled", cancelled(0))
			c.notify("notifications/cancelled", cancelled(0))
		}},
		"older, the stream is closed": {false, func(_ *testing.T, _ *site, _ *web, leave context.CancelFunc) { leave() }},
		"older, the session ends": {false, func(t *testing.T, _ *site, c *web, _ context.CancelFunc) {
			if code, _, _ := c.status(c.request(t.Context(), "DELETE", "/mcp", nil)); code != 204 {
				t.Errorf("DELETE = %d, want 204", code)
			}
		}},
		"newer, the stream is closed": {true, func(t *testing.T, s *site, c *web, leave context.CancelFunc) {
			pid := s.pid("ada", "http")
			// The same credential, and another, with the same id: nothing is cancelled.
			s.newer(tokenAda, nil).notify("notifications/cancelled", withMeta(cancelled(0), false))
			s.newer(tokenGrace, nil).notify("notifications/cancelled", withMeta(cancelled(0), false))
			c.ask("tools/list", nil)
			if !alive(t, pid) {
				t.Fatal("a notification of the newer era cancelled a call")
			}
			leave()
		}},
		"the server ends": {true, func(_ *testing.T, s *site, _ *web, _ context.CancelFunc) { s.http.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hold)
			s := newSite(t, w)
			c := s.newer(tokenAda, decide("chat"))
			if !x.modern {
				c = s.older(tokenAda, decide("chat"))
				c.next = 0
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			done := make(chan string, 1)
			go func() {
				reply, err := c.try(ctx, "tools/call", holdParams())
				done <- fmt.Sprint(reply, err)
			}()
			pid := s.pid("ada", "http")
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

// A call whose client goes away while a person is asked is withdrawn from every
// channel, and an answer that comes then is nothing.
func TestHTTPCancelQuestion(t *testing.T) {
	open := map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}
	for _, modern := range []bool{false, true} {
		for _, elicits := range []bool{false, true} {
			if modern && elicits {
				continue // the question is in the answer, and nothing waits
			}
			w := newWorld(t, triage, everywhere(20*time.Second))
			s := newSite(t, w)
			var answer func(string, map[string]any) map[string]any
			if elicits {
				answer = func(string, map[string]any) map[string]any { return nil }
			}
			c := s.newer(tokenAda, answer)
			if !modern {
				c = s.older(tokenAda, answer)
			}
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := c.try(ctx, "tools/call", open)
				done <- err
			}()
			p := w.pending(1)[0]
			if p.Person != "ada" {
				t.Errorf("the call is of %q, want ada", p.Person)
			}
			leave()
			w.pending(0)
			<-done
			if _, err := w.gate().Decide(p.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err == nil {
				t.Error("a call whose client went away can still be allowed")
			}
			w.awaitLog("decision")
			if e := w.entries(); len(e) != 1 || e[0].Decision != "deny" {
				t.Errorf("the log has %+v, want one denial", e)
			}
			// By a notification, the question on the stream is withdrawn too.
			if elicits {
				c.next = 0
				go func() {
					reply, err := c.try(t.Context(), "tools/call", open)
					if err == nil && reply != nil {
						err = fmt.Errorf("it is answered with %v", reply)
					}
					done <- err
				}()
				w.pending(1)
				c.notify("notifications/cancelled", map[string]any{"requestId": 0})
				w.pending(0)
				if err := <-done; err != nil {
					t.Errorf("a cancelled call: %v", err)
				}
				if got := c.heard(); !slices.Equal(got, []string{"notifications/cancelled"}) {
					t.Errorf("its stream has %q, want the question withdrawn", got)
				}
			}
		}
	}
}

// Page and terminal answer for clients that cannot ask, and a call that nobody
// answers comes back with what to do.
func TestHTTPAnsweredElsewhere(t *testing.T) {
	for _, modern := range []bool{false, true} {
		w := newWorld(t, triage, everywhere(20*time.Second))
		s := newSite(t, w)
		c := s.newer(tokenAda, nil)
		if !modern {
			c = s.older(tokenAda, nil)
		}
		args := map[string]any{"pack_id": "triage"}
		done := make(chan map[string]any, 1)
		go func() {
			reply, _ := c.try(t.Context(), "tools/call", map[string]any{"name": "capability_packs_open_docs", "arguments": args})
			done <- reply
		}()
		w.decide(w.pending(1)[0].Code, queue.Once)
		if got := code(t, <-done); got != "" {
			t.Errorf("the call ends with %q, want it allowed", got)
		}
		w.srv.opts.Wait = 50 * time.Millisecond
		if e := c.fails("approval_pending", "capability_packs_open_docs", args); e["approval_code"] != w.pending(1)[0].Code {
			t.Errorf("error = %v, want the code in it", e)
		}
		// Another person's call is another one, and cannot use the answer.
		w.decide(w.pending(1)[0].Code, queue.Once)
		other := s.newer(tokenGrace, nil)
		if e := other.fails("approval_pending", "capability_packs_open_docs", args); e["approval_code"] == "" {
			t.Errorf("error = %v", e)
		}
		c.ok("capability_packs_open_docs", args)
	}
}

// A client that takes no stream cannot be asked on one, whatever it declared.
func TestHTTPJSONOnly(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	c := s.older(tokenAda, func(string, map[string]any) map[string]any {
		t.Error("it was asked")
		return nil
	})
	r := c.request(t.Context(), "POST", "/mcp", c.encode(map[string]any{"id": 7, "method": "tools/call", "params": map[string]any{
		"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"},
	}}))
	r.Header.Set("Accept", "application/json")
	code, h, text := c.status(r)
	if code != 200 || h.Get("Content-Type") != "application/json" || !strings.Contains(text, `"denied"`) || !strings.Contains(text, `"id":7`) {
		t.Errorf("the call = %d %s, want a denial as JSON", code, text)
	}
	// And one that takes nothing else gets a stream.
	r = c.request(t.Context(), "POST", "/mcp", []byte(pingBody))
	r.Header.Set("Accept", "text/event-stream")
	if code, h, text := c.status(r); code != 200 || h.Get("Content-Type") != "text/event-stream" || text != "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n" {
		t.Errorf("ping as a stream = %d %q", code, text)
	}
}

// Whoever wants to know hears that a call waits, and that a program runs; a
// token that is zero is a token.
func TestHTTPProgress(t *testing.T) {
	needShell(t)
	for _, modern := range []bool{false, true} {
		w := newWorld(t, hold, everywhere(20*time.Second))
		w.srv.progress = time.Millisecond
		s := newSite(t, w)
		c := s.newer(tokenAda, nil)
		if !modern {
			c = s.older(tokenAda, nil)
		}
		params := holdParams()
		if modern {
			params = withMeta(params, false)
		} else {
			params["_meta"] = map[string]any{}
		}
		params["_meta"].(map[string]any)["progressToken"] = 0
		l := c.open("POST", "/mcp", map[string]any{"id": 0, "method": "tools/call", "params": params})
		last, let := 0.0, false
		for _, want := range []string{"waiting for the user", "the program has been running"} {
			for {
				m := l.next()
				p, _ := m["params"].(map[string]any)
				n, _ := p["progress"].(float64)
				if m["method"] != "notifications/progress" || p["progressToken"] != 0.0 || n <= last {
					t.Fatalf("the stream has %v after %v, want more progress", m, last)
				}
				last = n
				if strings.Contains(p["message"].(string), want) {
					break
				}
			}
			if !let {
				w.decide(w.pending(1)[0].Code, queue.Once)
				let = true
			}
		}
		s.release("ada")
		for {
			m := l.next()
			if m["method"] == nil {
				if got := result(t, m)["structuredContent"].(map[string]any); m["id"] != 0.0 || got["stdout"] != "let go\n" {
					t.Errorf("the reply = %v", m)
				}
				break
			}
		}
	}
}

// release lets the program of a person's chat go.
func (s *site) release(person string) {
	s.w.t.Helper()
	for _, c := range s.w.srv.everyChat() {
		if c.person == person {
			if err := os.WriteFile(filepath.Join(c.workspace, "go"), nil, 0o600); err != nil {
				s.w.t.Fatal(err)
			}
		}
	}
}

// An answer that is not there for long is a stream with signs of life.
func TestHTTPKeepAlive(t *testing.T) {
	w := newWorld(t, triage, everywhere(20*time.Second))
	s := newSite(t, w)
	s.http.beat = time.Millisecond
	c := s.older(tokenAda, nil)
	resp := c.do(c.request(t.Context(), "POST", "/mcp", c.encode(map[string]any{"id": 1, "method": "tools/call", "params": map[string]any{
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

// Clients that do not read, or do not finish sending, cost nobody else anything,
// and do not keep the server from ending.
func TestHTTPSlowClients(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	s.http.sends, s.http.reads, s.http.beat = 50*time.Millisecond, 50*time.Millisecond, time.Millisecond
	addr := strings.TrimPrefix(s.srv.URL, "http://")
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
	// A body that does not come.
	c := dial("POST /mcp HTTP/1.1\r\n" + auth + "Content-Length: 100\r\n\r\n{")
	if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("a body that does not come: %q, %v, want 408", got, err)
	}
	// Streams that nobody reads: with a sign of life every millisecond, what lies
	// between the two is full at some time. A small buffer makes it soon.
	good := s.older(tokenAda, decide("once"))
	for range 10 {
		c := dial("GET /mcp HTTP/1.1\r\n" + auth + "Mcp-Session-Id: " + good.session + "\r\nAccept: text/event-stream\r\n\r\n")
		_ = c.(*net.TCPConn).SetReadBuffer(1)
	}
	good.ask("ping", nil)
	good.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	if got := len(s.http.sessions[good.session].waiting); got > maxStreams {
		t.Errorf("%d streams wait for news, want at most %d", got, maxStreams)
	}
	began := time.Now()
	s.http.Close()
	if took := time.Since(began); took > wire.EndTime+2*wire.FlushTime {
		t.Errorf("Close took %s", took)
	}
}

// Nothing is left of a server that was closed.
func TestHTTPClose(t *testing.T) {
	needShell(t)
	w := newWorld(t, hold+triage, everywhere(20*time.Second))
	w.in.Close()
	<-w.done
	w.done <- nil
	before := runtime.NumGoroutine()
	s := newSite(t, w)
	older, newer := s.older(tokenAda, decide("chat")), s.newer(tokenGrace, decide("chat"))
	streams := []*listening{
		older.open("GET", "/mcp", nil), s.client(tokenAda).open("GET", "/sse", nil),
		newer.open("POST", "/mcp", map[string]any{"id": 1, "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": map[string]any{"toolsListChanged": true}}, false)}),
	}
	done := make(chan error, 3)
	for _, c := range []*web{older, newer} {
		go func() {
			_, err := c.try(context.Background(), "tools/call", holdParams())
			done <- err
		}()
	}
	silent := s.older(tokenGrace, nil)
	go func() {
		_, err := silent.try(context.Background(), "tools/call", map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}})
		done <- err
	}()
	s.until("two programs run", func() bool {
		n := 0
		for _, e := range w.entries() {
			if e.Event == "run.start" {
				n++
			}
		}
		return n == 2
	})
	w.pending(1)
	pids := []string{s.pid("ada", "http"), s.pid("grace", "http")}
	s.http.Close()
	for range 3 {
		if err := <-done; err != nil {
			t.Errorf("a call that was under way got no answer: %v", err)
		}
	}
	for _, l := range streams {
		l.drain()
	}
	for _, pid := range pids {
		if alive(t, pid) {
			t.Error("a program still runs")
		}
	}
	if got := w.srv.everyChat(); len(got) != 0 {
		t.Errorf("%d chats are left", len(got))
	}
	if code, _, _ := older.status(older.request(t.Context(), "GET", "/healthz", nil)); code != http.StatusServiceUnavailable {
		t.Errorf("/healthz of a server that ended = %d, want 503", code)
	}
	s.http.Close() // again
	s.tr.CloseIdleConnections()
	s.srv.Close()
	s.until("no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
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
