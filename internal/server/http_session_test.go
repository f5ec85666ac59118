package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A session is whose credential made it, on every method, and ends.
func TestHTTPSessions(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	ada := s.older(tokenAda, nil)
	grace := s.older(tokenGrace, nil)
	if ada.session == grace.session {
		t.Fatal("two sessions have one id")
	}
	in := func(c *web, session, method, body string) int {
		r := c.request(t.Context(), method, "/mcp", []byte(body))
		r.Header.Set("Mcp-Session-Id", session)
		code, _, _ := c.status(r)
		return code
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		for name, session := range map[string]string{"another's": ada.session, "one that never was": "0123456789ABCDEFGHIJKLMNOP", "one in small letters": strings.ToLower(grace.session)} {
			if code := in(grace, session, method, pingBody); code != 404 {
				t.Errorf("%s with the session %s = %d, want 404", method, name, code)
			}
		}
		if code := in(grace, "", method, pingBody); code != 400 {
			t.Errorf("%s without a session = %d, want 400", method, code)
		}
	}
	// An answer and a cancellation from elsewhere are nothing, too.
	if code := in(grace, ada.session, "POST", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`); code != 404 {
		t.Errorf("an answer in another's session = %d, want 404", code)
	}
	if code := in(ada, ada.session, "POST", pingBody); code != 200 {
		t.Errorf("ping = %d, want 200", code)
	}
	news := ada.open("GET", "/mcp", nil)
	if code := in(ada, ada.session, "DELETE", ""); code != 204 {
		t.Errorf("DELETE = %d, want 204", code)
	}
	if m := news.next(); m != nil {
		t.Errorf("the stream of a session that ended has %v, want its end", m)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if code := in(ada, ada.session, method, pingBody); code != 404 {
			t.Errorf("%s with a session that ended = %d, want 404", method, code)
		}
	}
	if code := in(grace, grace.session, "POST", pingBody); code != 200 {
		t.Errorf("the other session = %d, want 200", code)
	}
	// Nobody used it: it ends by itself, and so does the chat of a credential.
	modern := s.newer(tokenGrace, nil)
	modern.ask("tools/list", nil)
	before := len(w.srv.everyChat())
	news = grace.open("GET", "/mcp", nil)
	s.http.expire(time.Now().Add(2 * time.Hour))
	if got := len(w.srv.everyChat()); got != before-1 {
		t.Errorf("%d of %d chats are left, want all but the credential's", got, before)
	}
	if code := in(grace, grace.session, "POST", pingBody); code != 200 {
		t.Errorf("a session with an open stream = %d, want 200", code)
	}
	news.stop()
	news.drain()
	s.until("the session is idle", func() bool {
		s.http.expire(time.Now().Add(2 * time.Hour))
		return in(grace, grace.session, "POST", pingBody) == 404
	})
	if got := len(w.srv.everyChat()); got != 1 { // that of the world's own client
		t.Errorf("%d chats are left, want one", got)
	}
	// Without a token of its own for the person, a session says nothing.
	bad := grace.request(t.Context(), "POST", "/mcp", []byte(pingBody))
	bad.Header.Del("Authorization")
	if code, _, _ := grace.status(bad); code != 401 {
		t.Errorf("a session without a token = %d, want 401", code)
	}
}

// What is in use stays, however long ago it began: neither the chat of a
// credential nor a session ends while a call is under way, and a second request
// with the id of the first is refused and takes nothing from it.
func TestHTTPInUse(t *testing.T) {
	needShell(t)
	for name, modern := range map[string]bool{"older": false, "newer": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hold)
			s := newSite(t, w)
			c := s.newer(tokenAda, decide("chat"))
			if !modern {
				c = s.older(tokenAda, decide("chat"))
				c.next = 7
			}
			done := make(chan string, 1)
			go func() {
				reply, err := c.try(t.Context(), "tools/call", holdParams())
				done <- fmt.Sprint(reply, err)
			}()
			s.pid("ada", "http")
			if !modern {
				for id, want := range map[string]int{"7": 400, `"7"`: 200} {
					r := c.request(t.Context(), "POST", "/mcp", []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`))
					if code, _, body := c.status(r); code != want || strings.Contains(body, "still under way") != (want == 400) {
						t.Errorf("another request with the id %s = %d %s, want %d", id, code, body, want)
					}
				}
			}
			s.http.expire(time.Now().Add(2 * time.Hour))
			for _, ch := range w.srv.everyChat() {
				if ch.person == "ada" {
					if err := os.WriteFile(filepath.Join(ch.workspace, "go"), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
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

// until waits for what comes soon.
func (s *site) until(what string, is func() bool) {
	s.w.t.Helper()
	late := time.After(20 * time.Second)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-late:
			s.w.t.Fatalf("it does not come about that %s", what)
		}
	}
}

// A credential with too many sessions loses the one that was idle longest.
func TestHTTPManySessions(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	first := s.older(tokenAda, nil)
	second := s.older(tokenAda, nil)
	c := s.http.callers[0]
	c.mu.Lock()
	c.sessions = maxSessions // as if there were others
	c.mu.Unlock()
	second.ask("ping", nil)
	s.older(tokenAda, nil)
	if code, _, _ := first.status(first.request(t.Context(), "POST", "/mcp", []byte(pingBody))); code != 404 {
		t.Errorf("the oldest session = %d, want 404", code)
	}
	second.ask("ping", nil)
	s.older(tokenGrace, nil) // who is not concerned
}

// An eager client has something done as soon as the answer begins.
type eager struct {
	*httptest.ResponseRecorder
	once sync.Once
	then func()
}

func (e *eager) WriteHeader(status int) {
	e.ResponseRecorder.WriteHeader(status)
	e.once.Do(e.then)
}

// A request may have the id of one whose answer the client has, although the end
// of that answer is still being written.
func TestHTTPSameIDAgain(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	c := s.older(tokenAda, nil)
	again := false
	w := &eager{ResponseRecorder: httptest.NewRecorder(), then: func() {
		code, _, text := c.status(c.request(t.Context(), "POST", "/mcp", []byte(pingBody)))
		if again = code == 200; !again {
			t.Errorf("the next request with the id = %d %s", code, text)
		}
	}}
	s.http.ServeHTTP(w, c.request(t.Context(), "POST", "/mcp", []byte(pingBody)))
	if w.Code != 200 || !again {
		t.Errorf("a request = %d %s", w.Code, w.Body)
	}
}

// However many begin a session at once, there are never more than there may be.
func TestHTTPManySessionsAtOnce(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	const real = 4
	for range real {
		s.older(tokenAda, nil)
	}
	c := s.http.callers[0]
	c.mu.Lock()
	c.sessions = maxSessions // as if there were others
	c.mu.Unlock()
	var all sync.WaitGroup
	for range 8 * real {
		all.Go(func() {
			in := s.client(tokenAda)
			_, _, err := in.exchange(t.Context(), map[string]any{"id": 1, "method": "initialize", "params": map[string]any{
				"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "web", "version": "1"},
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s.http.mu.Lock()
	have := len(s.http.sessions)
	s.http.mu.Unlock()
	if c.mu.Lock(); c.sessions > maxSessions || have > real {
		t.Errorf("there are %d sessions, %d of them real, want at most %d and %d", c.sessions, have, maxSessions, real)
	}
	c.mu.Unlock()
}

// News that a stream took and did not send goes on the next one.
func TestHTTPNewsOfEndedStream(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	c := s.older(tokenAda, nil)
	in := s.http.sessions[c.session]
	broken := s.http.newStream(httptest.NewRecorder(), true)
	in.wait(broken)
	in.Send(map[string]any{"method": "first"})
	in.Send(map[string]any{"method": "second"})
	in.unwait(broken)
	in.Send(map[string]any{"method": "third"})
	if broken.put("more") == nil {
		t.Error("a stream that ended takes more")
	}
	news := c.open("GET", "/mcp", nil)
	for _, want := range []string{"first", "second", "third"} {
		if m := news.next(); m["method"] != want {
			t.Errorf("%v came, want %s", m, want)
		}
	}
}

// Whoever listens takes a stream.
func TestHTTPListenWithoutStream(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	c := s.newer(tokenAda, nil)
	r := c.request(t.Context(), "POST", "/mcp", c.encode(map[string]any{"id": 1, "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": map[string]any{"toolsListChanged": true}}, false)}))
	r.Header.Set("Accept", "application/json")
	if code, _, text := c.status(r); code != http.StatusNotAcceptable || !strings.Contains(text, "text/event-stream") {
		t.Errorf("listening without a stream = %d %s, want 406", code, text)
	}
}

// Nothing of one chat is in another: fifty at once, of both eras and transports,
// some of one credential. Neither tools, nor grants, workspaces, resources or
// notifications.
func TestHTTPFiftyChats(t *testing.T) {
	needShell(t)
	const n = 50
	w := newWorld(t, triage)
	w.srv.every = 5 * time.Millisecond
	people := make([]Credential, n)
	for i := range people {
		people[i] = Credential{Token: fmt.Sprintf("token-of-person-%04d", i), Person: fmt.Sprintf("person-%d", i)}
	}
	s := newSite(t, w, func(o *HTTPOptions) { o.Credentials = people })
	var mu sync.Mutex
	var workspaces []string
	news := make([][]*listening, n)
	want := make([]map[string]bool, n) // :: method, and the URI → whether it was to come
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			who := people[i]
			var c *web
			switch i % 3 {
			case 0:
				c = s.newer(who.Token, decide("chat"))
			case 1:
				c = s.older(who.Token, decide("chat"))
			default: // a session of its own with the token of another's
				who = people[i-1]
				c = s.older(who.Token, decide("chat"))
			}
			if got := len(c.listed()); got != 6 {
				t.Errorf("chat %d begins with %d tools, want 6", i, got)
			}
			want[i] = make(map[string]bool)
			if c.modern {
				all := c.open("POST", "/mcp", map[string]any{"id": "news", "method": "subscriptions/listen", "params": withMeta(map[string]any{
					"notifications": map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true},
				}, false)})
				all.next()
				news[i] = append(news[i], all)
			} else {
				news[i] = append(news[i], c.open("GET", "/mcp", nil))
			}
			// Half of them enable the tools; the others must not see that.
			c.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			enables := i%2 == 0
			if enables {
				c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
				ran := c.ok("triage__greet", map[string]any{"who": who.Person})
				if ran["stdout"] != "hello "+who.Person+"\n" {
					t.Errorf("chat %d ran %v", i, ran)
				}
				mu.Lock()
				mine := ran["workspace"].(string)
				workspaces = append(workspaces, mine)
				others := slices.DeleteFunc(slices.Clone(workspaces), func(h string) bool { return h == mine })
				mu.Unlock()
				run := map[string]any{"pack_id": "triage", "tool": "greet", "arguments": map[string]any{"who": "x"}, "workspace": "new"}
				second := c.ok("capability_packs_call_tool", run)["workspace"].(string)
				mu.Lock()
				workspaces = append(workspaces, second)
				mu.Unlock()
				handles := []string{mine, second}
				slices.Sort(handles)
				if got := c.workspaces(); !slices.Equal(got, handles) {
					t.Errorf("chat %d knows of the workspaces %q, want its own %q", i, got, handles)
				}
				for _, other := range others[:min(2, len(others))] {
					c.fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt", "workspace": other})
					run["workspace"] = other
					c.fails("not_found", "capability_packs_call_tool", run)
					uri := "workspace://" + other + "/made.txt"
					for _, method := range []string{"resources/read", "resources/directory/read"} {
						if e, _ := c.ask(method, map[string]any{"uri": strings.TrimSuffix(uri, map[bool]string{true: "", false: "/made.txt"}[method == "resources/read"])})["error"].(map[string]any); e == nil || e["code"] == float64(codeNotGiven) {
							t.Errorf("chat %d: %s of another's file = %v", i, method, e)
						}
					}
				}
				// Its own file is its own news.
				uri := "workspace://" + mine + "/made.txt"
				if got := contentsOf(t, c.ask("resources/read", map[string]any{"uri": uri})); got["text"] != "made\n" {
					t.Errorf("chat %d has %v in its own workspace", i, got)
				}
				if c.modern {
					l, got := listen(c, append([]string{uri}, uris(others)...)...)
					if !slices.Equal(got, []string{uri}) {
						t.Errorf("chat %d subscribed to %q, want its own file", i, got)
					}
					news[i] = append(news[i], l)
				} else {
					result(t, c.ask("resources/subscribe", map[string]any{"uri": uri}))
					for _, other := range uris(others) {
						if c.ask("resources/subscribe", map[string]any{"uri": other})["error"] == nil {
							t.Errorf("chat %d subscribed to another's file", i)
						}
					}
				}
				c.ok("triage__greet", map[string]any{"who": "again"})
				want[i]["notifications/resources/updated "+uri] = true
				want[i][toolsChanged] = true
			} else {
				c.fails("not_enabled", "capability_packs_call_tool", map[string]any{"pack_id": "triage", "tool": "greet", "arguments": map[string]any{"who": "x"}})
				c.fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt"})
			}
			if got := slices.Contains(c.listed(), "triage__greet"); got != enables {
				t.Errorf("chat %d lists the tool: %v, want %v", i, got, enables)
			}
			// A grant of this chat holds here, and was asked for here.
			asked := len(c.asked)
			c.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			if len(c.asked) != asked {
				t.Errorf("chat %d is asked again", i)
			}
			for _, q := range c.asked {
				if !says(q, `for "`+who.Person+`", by`) {
					t.Errorf("chat %d is asked %q, want %s in it", i, q, who.Person)
				}
			}
			// What one attaches, and the lists that this changes, are its own.
			prompts := func() bool {
				return slices.Contains(field(objects(result(t, c.ask("prompts/list", nil))["prompts"]), "name"), "triage")
			}
			documents := func() bool {
				return slices.Contains(field(objects(result(t, c.ask("resources/list", nil))["resources"]), "uri"), "skill://triage/SKILL.md")
			}
			if !prompts() || !documents() {
				t.Errorf("chat %d has lost its pack", i)
			}
			if i%5 == 0 {
				message(t, c.ask("prompts/get", map[string]any{"name": "detach", "arguments": map[string]any{"pack_id": "triage"}}))
				if prompts() || documents() {
					t.Errorf("chat %d has a pack that it detached", i)
				}
				for _, method := range everyList {
					want[i][method] = true
				}
			}
			if enables { // the file's news takes its time
				l := news[i][len(news[i])-1]
				for !l.hasHeard("notifications/resources/updated") {
					l.keep(l.next())
				}
			}
		})
	}
	wg.Wait()
	s.http.Close() // which ends each stream after all that was to be said on it
	for i := range n {
		got := make(map[string]bool)
		for _, l := range news[i] {
			for m := l.next(); m != nil; m = l.next() {
				l.keep(m)
			}
			for _, m := range l.kept {
				if method, _ := m["method"].(string); method != "" {
					params, _ := m["params"].(map[string]any)
					uri, _ := params["uri"].(string)
					got[strings.TrimSpace(method+" "+uri)] = true
				}
			}
		}
		if !maps.Equal(got, want[i]) {
			t.Errorf("chat %d heard %v, want %v", i, got, want[i])
		}
	}
	slices.Sort(workspaces)
	if got := len(slices.Compact(workspaces)); got != n {
		t.Errorf("%d workspaces, want %d", got, n)
	}
	for _, e := range w.entries() {
		if e.Caller == "" || e.Chat == "" {
			t.Fatalf("the log has a line without a person: %+v", e)
		}
	}
	for i, person := range people {
		if i%3 == 2 {
			continue
		}
		opened := 0
		for _, e := range w.entries() {
			if e.Kind == "open" && e.Caller == person.Person && e.Channel != "grant" {
				opened++
			}
		}
		if want := 1 + i%3; opened != want && i+1 < n {
			t.Errorf("%s was asked %d times to open, want %d: once in each session", person.Person, opened, want)
		}
	}
}

// workspaces are the handles that a client can complete.
func (c *web) workspaces() []string {
	c.t.Helper()
	r := result(c.t, c.ask("completion/complete", map[string]any{
		"ref": map[string]any{"type": "ref/resource", "uri": templateWorkspace}, "argument": map[string]any{"name": "workspace", "value": ""},
	}))
	return texts(r["completion"].(map[string]any)["values"])
}

// uris are those of the file that programs make, of a few workspaces.
func uris(handles []string) []string {
	var all []string
	for _, h := range handles[:min(2, len(handles))] {
		all = append(all, "workspace://"+h+"/made.txt")
	}
	return all
}

// keep remembers what came on a stream.
func (l *listening) keep(m map[string]any) {
	l.t.Helper()
	if m == nil {
		l.t.Fatal("the stream has ended")
	}
	l.kept = append(l.kept, m)
}

func (l *listening) hasHeard(method string) bool {
	return slices.ContainsFunc(l.kept, func(m map[string]any) bool { return m["method"] == method })
}

// Whom a change of the list concerns hears of it once; nobody else does.
func TestHTTPListChanged(t *testing.T) {
	w := newWorld(t, triage)
	s := newSite(t, w)
	changed := "notifications/tools/list_changed"
	// What is attached differs in all three.
	lists := []string{changed, "notifications/prompts/list_changed", "notifications/resources/list_changed"}
	enable := func(c *web) { c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "triage"}) }
	detach := func(c *web, on bool) {
		for _, r := range w.srv.Rooms(t.Context()) {
			if r.Person == c.person() {
				if err := w.srv.SetAttached(t.Context(), r.Chat, "triage", on); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	// The older era: on the stream that waits for news, or with the next answer.
	ada, grace := s.older(tokenAda, decide("once")), s.older(tokenGrace, decide("once"))
	hers := grace.open("GET", "/mcp", nil)
	news := ada.open("GET", "/mcp", nil)
	enable(ada)
	if m := news.next(); m["method"] != changed {
		t.Errorf("the stream has %v, want that the list changed", m)
	}
	if got := ada.heard(); len(got) != 0 {
		t.Errorf("the call's own stream has %q too", got)
	}
	// Two streams: the news is told once, on the newer one.
	newer := ada.open("GET", "/mcp", nil)
	detach(ada, false)
	if m := newer.next(); m["method"] != changed {
		t.Errorf("the newer stream has %v, want that the list changed", m)
	}
	newer.stop()
	news.stop()
	news.drain()
	newer.drain()
	s.until("the streams are gone", func() bool {
		hs := s.http.sessions[ada.session]
		hs.mu.Lock()
		defer hs.mu.Unlock()
		return len(hs.waiting) == 0
	})
	// With no stream at all, nothing is lost, and nothing is told twice.
	detach(ada, true)
	detach(ada, false)
	ada.ask("ping", nil)
	if got := ada.heard(); !slices.Equal(got, lists) {
		t.Errorf("the next answer came with %q, want that the lists changed", got)
	}
	ada.ask("ping", nil)
	if got := ada.heard(); len(got) != 0 {
		t.Errorf("the answer after that came with %q", got)
	}
	// A client that takes no stream is told when it takes one.
	detach(ada, true)
	r := ada.request(t.Context(), "POST", "/mcp", []byte(pingBody))
	r.Header.Set("Accept", "application/json")
	if code, h, text := ada.status(r); code != 200 || h.Get("Content-Type") != "application/json" {
		t.Errorf("ping for JSON = %d %q", code, text)
	}
	ada.ask("ping", nil)
	if got := ada.heard(); !slices.Equal(got, lists) {
		t.Errorf("the next answer came with %q, want that the lists changed", got)
	}

	// The newer era: on the streams that ask for it.
	modern := s.newer(tokenAda, decide("once"))
	listen := func(c *web, id any, what map[string]any) *listening {
		l := c.open("POST", "/mcp", map[string]any{"id": id, "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": what}, false)})
		if m := l.next(); m["method"] != "notifications/subscriptions/acknowledged" {
			t.Fatalf("the stream begins with %v, want its acknowledgement", m)
		}
		return l
	}
	a, b := listen(modern, 0, map[string]any{"toolsListChanged": true}), listen(modern, "b", map[string]any{"toolsListChanged": true})
	other := listen(s.newer(tokenGrace, nil), 0, map[string]any{"toolsListChanged": true})
	enable(modern)
	for id, l := range map[any]*listening{0.0: a, "b": b} {
		m := l.next()
		params, _ := m["params"].(map[string]any)
		meta, _ := params["_meta"].(map[string]any)
		if m["method"] != changed || meta["io.modelcontextprotocol/subscriptionId"] != id {
			t.Errorf("the stream %v has %v, want that the list changed, with its id", id, m)
		}
	}
	enable(modern) // nothing new
	s.http.Close()
	// What ends a stream is its result, and nothing else came on it.
	for name, l := range map[string]*listening{"a": a, "b": b, "another's": other, "of the older era": hers} {
		for m := l.next(); m != nil; m = l.next() {
			if m["method"] != nil {
				t.Errorf("the stream %s has %v too", name, m)
			}
		}
	}
}

// person is whose token the client has.
func (c *web) person() string {
	return map[string]string{tokenAda: "ada", tokenGrace: "grace"}[c.token]
}

// A chat's folder goes with it when nothing is in it.
func TestHTTPWorkspaces(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	s := newSite(t, w)
	empty, used := s.older(tokenAda, decide("once")), s.older(tokenAda, decide("once"))
	used.ok("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
	kept := used.ok("triage__greet", map[string]any{"who": "x"})["workspace"].(string)
	for _, c := range []*web{empty, used} {
		if code, _, _ := c.status(c.request(context.Background(), http.MethodDelete, "/mcp", nil)); code != 204 {
			t.Errorf("DELETE = %d", code)
		}
	}
	s.until("both chats have ended", func() bool { return len(w.srv.everyChat()) == 1 })
	w.close()
	left, err := os.ReadDir(w.srv.opts.Workspaces)
	if err != nil || len(left) != 1 || left[0].Name() != kept {
		t.Errorf("the folders that are left: %v, %v, want %s", left, err, kept)
	}
	if _, err := os.Stat(filepath.Join(w.srv.opts.Workspaces, kept, "made.txt")); err != nil {
		t.Error(err)
	}
}
