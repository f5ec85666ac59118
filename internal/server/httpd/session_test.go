package httpd

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// A session belongs to the credential that created it, for every method, and
// ends.
func TestHTTPSessions(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	ada := s.Older(tokenAda, nil)
	grace := s.Older(tokenGrace, nil)
	if ada.Session == grace.Session {
		t.Fatal("two sessions have one id")
	}
	in := func(c *servertest.Client, session, method, body string) int {
		r := c.Request(t.Context(), method, "/mcp", []byte(body))
		r.Header.Set("Mcp-Session-Id", session)
		code, _, _ := c.Status(r)
		return code
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		for name, session := range map[string]string{"another's": ada.Session, "one that never was": "0123456789ABCDEFGHIJKLMNOP", "one in small letters": strings.ToLower(grace.Session)} {
			if code := in(grace, session, method, pingBody); code != 404 {
				t.Errorf("%s with the session %s = %d, want 404", method, name, code)
			}
		}
		if code := in(grace, "", method, pingBody); code != 400 {
			t.Errorf("%s without a session = %d, want 400", method, code)
		}
	}
	// An answer or a cancellation from another credential has no effect either.
	if code := in(grace, ada.Session, "POST", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`); code != 404 {
		t.Errorf("an answer in another's session = %d, want 404", code)
	}
	if code := in(ada, ada.Session, "POST", pingBody); code != 200 {
		t.Errorf("ping = %d, want 200", code)
	}
	news := ada.Open("GET", "/mcp", nil)
	if code := in(ada, ada.Session, "DELETE", ""); code != 204 {
		t.Errorf("DELETE = %d, want 204", code)
	}
	if m := news.Next(); m != nil {
		t.Errorf("the stream of a session that ended has %v, want its end", m)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if code := in(ada, ada.Session, method, pingBody); code != 404 {
			t.Errorf("%s with a session that ended = %d, want 404", method, code)
		}
	}
	if code := in(grace, grace.Session, "POST", pingBody); code != 200 {
		t.Errorf("the other session = %d, want 200", code)
	}
	// An idle session ends by itself, and so does the chat of a credential.
	modern := s.Newer(tokenGrace, nil)
	modern.Ask("tools/list", nil)
	before := w.chats()
	news = grace.Open("GET", "/mcp", nil)
	s.http.expire(time.Now().Add(2 * time.Hour))
	if got := w.chats(); got != before-1 {
		t.Errorf("%d of %d chats are left, want all but the credential's", got, before)
	}
	if code := in(grace, grace.Session, "POST", pingBody); code != 200 {
		t.Errorf("a session with an open stream = %d, want 200", code)
	}
	news.Stop()
	news.Drain()
	until(t, "the session is idle", func() bool {
		s.http.expire(time.Now().Add(2 * time.Hour))
		return in(grace, grace.Session, "POST", pingBody) == 404
	})
	if got := w.chats(); got != 0 {
		t.Errorf("%d chats are left, want none", got)
	}
	// A session id without the person's own token is worth nothing.
	bad := grace.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
	bad.Header.Del("Authorization")
	if code, _, _ := grace.Status(bad); code != 401 {
		t.Errorf("a session without a token = %d, want 401", code)
	}
}

// What is in use stays, however long ago it began: neither the chat of a
// credential nor a session ends during a call. A second request with the id of
// the first is refused and does not affect it.
func TestHTTPIsUse(t *testing.T) {
	needShell(t)
	for name, modern := range map[string]bool{"older": false, "newer": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hold)
			s := newSite(t, w)
			c := s.Newer(tokenAda, decide("chat"))
			if !modern {
				c = s.Older(tokenAda, decide("chat"))
				c.NextID = 7
			}
			done := make(chan string, 1)
			go func() {
				reply, err := c.Try(t.Context(), "tools/call", servertest.HoldParams())
				done <- fmt.Sprint(reply, err)
			}()
			s.w.pid("ada", "http")
			if !modern {
				for id, want := range map[string]int{"7": 400, `"7"`: 200} {
					r := c.Request(t.Context(), "POST", "/mcp", []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`))
					if code, _, body := c.Status(r); code != want || strings.Contains(body, "still under way") != (want == 400) {
						t.Errorf("another request with the id %s = %d %s, want %d", id, code, body, want)
					}
				}
			}
			s.http.expire(time.Now().Add(2 * time.Hour))
			w.release("ada")
			select {
			case got := <-done:
				if !strings.Contains(got, "let go") {
					t.Errorf("the call got %s, want that its program went to its end", got)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the call does not end")
			}
		})
	}
}

// A credential with too many sessions loses the one idle longest.
func TestHTTPManySessions(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	first := s.Older(tokenAda, nil)
	second := s.Older(tokenAda, nil)
	c := s.http.callers[0]
	c.mu.Lock()
	c.sessions = maxSessions // as if there were others
	c.mu.Unlock()
	second.Ask("ping", nil)
	s.Older(tokenAda, nil)
	if code, _, _ := first.Status(first.Request(t.Context(), "POST", "/mcp", []byte(pingBody))); code != 404 {
		t.Errorf("the oldest session = %d, want 404", code)
	}
	second.Ask("ping", nil)
	s.Older(tokenGrace, nil) // who is not affected
}

// An eager client calls a function as soon as the response begins.
type eager struct {
	*httptest.ResponseRecorder
	once sync.Once
	then func()
}

func (e *eager) WriteHeader(status int) {
	e.ResponseRecorder.WriteHeader(status)
	e.once.Do(e.then)
}

// A request may reuse the id of one whose answer the client has, although the
// end of that answer is still being written.
func TestHTTPSameIDAgain(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	c := s.Older(tokenAda, nil)
	again := false
	w := &eager{ResponseRecorder: httptest.NewRecorder(), then: func() {
		code, _, text := c.Status(c.Request(t.Context(), "POST", "/mcp", []byte(pingBody)))
		if again = code == 200; !again {
			t.Errorf("the next request with the id = %d %s", code, text)
		}
	}}
	s.http.ServeHTTP(w, c.Request(t.Context(), "POST", "/mcp", []byte(pingBody)))
	if w.Code != 200 || !again {
		t.Errorf("a request = %d %s", w.Code, w.Body)
	}
}

// However many clients begin a session at once, the bound holds.
func TestHTTPManySessionsAtOnce(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	const real = 4
	for range real {
		s.Older(tokenAda, nil)
	}
	c := s.http.callers[0]
	c.mu.Lock()
	c.sessions = maxSessions // as if there were others
	c.mu.Unlock()
	var all sync.WaitGroup
	for range 8 * real {
		all.Go(func() {
			in := s.Client(tokenAda)
			_, _, err := in.Exchange(t.Context(), map[string]any{"id": 1, "method": "initialize", "params": map[string]any{
				"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "web", "version": "1"},
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s.http.sessions.mu.Lock()
	have := len(s.http.sessions.byID)
	s.http.sessions.mu.Unlock()
	if c.mu.Lock(); c.sessions > maxSessions || have > real {
		t.Errorf("there are %d sessions, %d of them real, want at most %d and %d", c.sessions, have, maxSessions, real)
	}
	c.mu.Unlock()
}

// News that a stream took but did not send goes on the next one.
func TestHTTPNewsOfEndedStream(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	c := s.Older(tokenAda, nil)
	in := s.http.sessions.byID[c.Session]
	broken := s.http.newStream(httptest.NewRecorder(), true)
	in.news.wait(broken)
	in.news.Send(map[string]any{"method": "first"})
	in.news.Send(map[string]any{"method": "second"})
	in.news.unwait(broken)
	in.news.Send(map[string]any{"method": "third"})
	if broken.put("more") == nil {
		t.Error("a stream that ended takes more")
	}
	news := c.Open("GET", "/mcp", nil)
	for _, want := range []string{"first", "second", "third"} {
		if m := news.Next(); m["method"] != want {
			t.Errorf("%v came, want %s", m, want)
		}
	}
}

// Listening requires a stream.
func TestHTTPListenWithoutStream(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	c := s.Newer(tokenAda, nil)
	r := c.Request(t.Context(), "POST", "/mcp", c.Encode(map[string]any{"id": 1, "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": map[string]any{"toolsListChanged": true}}, false)}))
	r.Header.Set("Accept", "application/json")
	if code, _, text := c.Status(r); code != http.StatusNotAcceptable || !strings.Contains(text, "text/event-stream") {
		t.Errorf("listening without a stream = %d %s, want 406", code, text)
	}
}

// A client affected by a list change is told once; no other client is told.
func TestHTTPListChanged(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	changed := "notifications/tools/list_changed"
	// All three lists change.
	lists := []string{changed, "notifications/prompts/list_changed", "notifications/resources/list_changed"}
	enable := func(c *servertest.Client) { c.OK("capability_packs_enable_tools", map[string]any{"pack_id": "triage"}) }
	detach := func(c *servertest.Client, on bool) {
		for _, r := range w.srv.ChatViews(t.Context()) {
			if r.Person == map[string]string{tokenAda: "ada", tokenGrace: "grace"}[c.Token] {
				if err := w.srv.SetAttached(t.Context(), r.Chat, "triage", on); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	// The older era: on a stream that waits for news, or with the next response.
	ada, grace := s.Older(tokenAda, decide("once")), s.Older(tokenGrace, decide("once"))
	hers := grace.Open("GET", "/mcp", nil)
	news := ada.Open("GET", "/mcp", nil)
	enable(ada)
	if m := news.Next(); m["method"] != changed {
		t.Errorf("the stream has %v, want that the list changed", m)
	}
	if got := ada.Heard(); len(got) != 0 {
		t.Errorf("the call's own stream has %q too", got)
	}
	// Two streams: the news is sent once, on the newer one.
	newer := ada.Open("GET", "/mcp", nil)
	detach(ada, false)
	if m := newer.Next(); m["method"] != changed {
		t.Errorf("the newer stream has %v, want that the list changed", m)
	}
	newer.Stop()
	news.Stop()
	news.Drain()
	newer.Drain()
	until(t, "the streams are gone", func() bool {
		hs := s.http.sessions.byID[ada.Session]
		hs.news.mu.Lock()
		defer hs.news.mu.Unlock()
		return len(hs.news.waiting) == 0
	})
	// Without any stream, nothing is lost and nothing is sent twice.
	detach(ada, true)
	detach(ada, false)
	ada.Ask("ping", nil)
	if got := ada.Heard(); !slices.Equal(got, lists) {
		t.Errorf("the next answer came with %q, want that the lists changed", got)
	}
	ada.Ask("ping", nil)
	if got := ada.Heard(); len(got) != 0 {
		t.Errorf("the answer after that came with %q", got)
	}
	// A client that takes no stream is told once it takes one.
	detach(ada, true)
	r := ada.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
	r.Header.Set("Accept", "application/json")
	if code, h, text := ada.Status(r); code != 200 || h.Get("Content-Type") != "application/json" {
		t.Errorf("ping for JSON = %d %q", code, text)
	}
	ada.Ask("ping", nil)
	if got := ada.Heard(); !slices.Equal(got, lists) {
		t.Errorf("the next answer came with %q, want that the lists changed", got)
	}

	// The newer era: on the streams that ask for it.
	modern := s.Newer(tokenAda, decide("once"))
	listen := func(c *servertest.Client, id any, what map[string]any) *servertest.Stream {
		l := c.Open("POST", "/mcp", map[string]any{"id": id, "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": what}, false)})
		if m := l.Next(); m["method"] != "notifications/subscriptions/acknowledged" {
			t.Fatalf("the stream begins with %v, want its acknowledgement", m)
		}
		return l
	}
	a, b := listen(modern, 0, map[string]any{"toolsListChanged": true}), listen(modern, "b", map[string]any{"toolsListChanged": true})
	other := listen(s.Newer(tokenGrace, nil), 0, map[string]any{"toolsListChanged": true})
	enable(modern)
	for id, l := range map[any]*servertest.Stream{0.0: a, "b": b} {
		m := l.Next()
		params, _ := m["params"].(map[string]any)
		meta, _ := params["_meta"].(map[string]any)
		if m["method"] != changed || meta["io.modelcontextprotocol/subscriptionId"] != id {
			t.Errorf("the stream %v has %v, want that the list changed, with its id", id, m)
		}
	}
	enable(modern) // nothing new
	s.http.Close()
	// A stream ends with its result, and carried nothing else.
	for name, l := range map[string]*servertest.Stream{"a": a, "b": b, "another's": other, "of the older era": hers} {
		for m := l.Next(); m != nil; m = l.Next() {
			if m["method"] != nil {
				t.Errorf("the stream %s has %v too", name, m)
			}
		}
	}
}

// A chat's folder is removed with the chat if it is empty.
func TestHTTPWorkspaces(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	s := newSite(t, w)
	empty, used := s.Older(tokenAda, decide("once")), s.Older(tokenAda, decide("once"))
	used.OK("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
	kept := used.OK("triage__greet", map[string]any{"who": "x"})["workspace"].(string)
	for _, c := range []*servertest.Client{empty, used} {
		if code, _, _ := c.Status(c.Request(context.Background(), http.MethodDelete, "/mcp", nil)); code != 204 {
			t.Errorf("DELETE = %d", code)
		}
	}
	until(t, "both chats have ended", func() bool { return w.chats() == 0 })
	left, err := os.ReadDir(w.workspaces)
	if err != nil || len(left) != 1 || left[0].Name() != kept {
		t.Errorf("the folders that are left: %v, %v, want %s", left, err, kept)
	}
	if _, err := os.Stat(filepath.Join(w.workspaces, kept, "made.txt")); err != nil {
		t.Error(err)
	}
}
