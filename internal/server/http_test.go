package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A site is a server of a world's over HTTP, on a real socket.
type site struct {
	w    *world
	http *HTTP
	srv  *httptest.Server
	// tr is the clients' own, so that what they leave open can be closed.
	tr *http.Transport
}

const (
	tokenAda   = "token-of-ada-0123456789"
	tokenGrace = "token-of-grace-0123456789"
)

// newSite serves a world over HTTP, for Ada and Grace.
func newSite(t *testing.T, w *world, change ...func(*HTTPOptions)) *site {
	t.Helper()
	o := HTTPOptions{Credentials: []Credential{{Token: tokenAda, Person: "ada"}, {Token: tokenGrace, Person: "grace"}}}
	for _, f := range change {
		f(&o)
	}
	h, err := NewHTTP(w.srv, o)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{w: w, http: h, srv: httptest.NewServer(h), tr: &http.Transport{MaxIdleConnsPerHost: 200}}
	t.Cleanup(s.close)
	return s
}

func (s *site) close() {
	s.http.Close()
	s.tr.CloseIdleConnections()
	s.srv.Close()
}

// A web is a client over HTTP.
type web struct {
	t     *testing.T
	site  *site
	token string
	// session is the older era's; empty before initialize, and in the newer.
	session string
	modern  bool
	// answer is what the client's user does with a question; nil: the client
	// cannot ask.
	answer func(message string, schema map[string]any) map[string]any

	mu    sync.Mutex
	next  int
	asked []string
	notes []map[string]any
}

func (s *site) client(token string) *web { return &web{t: s.w.t, site: s, token: token} }

// older is a client that has done the handshake of the older era.
func (s *site) older(token string, answer func(string, map[string]any) map[string]any) *web {
	s.w.t.Helper()
	c := s.client(token)
	c.answer = answer
	c.initialize()
	return c
}

// newer is a client of 2026-07-28.
func (s *site) newer(token string, answer func(string, map[string]any) map[string]any) *web {
	c := s.client(token)
	c.modern, c.answer = true, answer
	return c
}

// request makes an HTTP request with what the client's era wants in the head.
func (c *web) request(ctx context.Context, method, path string, body []byte) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.site.srv.URL+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	if c.modern {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		var m struct {
			Method string
			Params struct{ Name, URI string }
		}
		_ = json.Unmarshal(body, &m)
		r.Header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			r.Header.Set("Mcp-Name", name)
		}
	}
	return r
}

func (c *web) do(r *http.Request) *http.Response {
	c.t.Helper()
	resp, err := (&http.Client{Transport: c.site.tr}).Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

// status makes a request and returns its status and what came with it.
func (c *web) status(r *http.Request) (int, http.Header, string) {
	c.t.Helper()
	// What should be refused may begin a stream instead, which has no end.
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	resp := c.do(r.WithContext(ctx))
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func (c *web) encode(m map[string]any) []byte {
	c.t.Helper()
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// events yields the messages of a stream of events until it ends. A sign of
// life is none.
func events(body io.Reader, each func(name, data string) bool) error {
	r := bufio.NewReader(body)
	name, data := "", ""
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "":
			if data != "" && !each(name, data) {
				return nil
			}
			name, data = "", ""
		case strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			data += line[len("data: "):]
		case strings.HasPrefix(line, ":"):
		default:
			return fmt.Errorf("the stream has the line %q", line)
		}
	}
}

// take handles one message and reports whether it is the answer.
func (c *web) take(m map[string]any) bool {
	switch {
	case m["method"] == "elicitation/create":
		params := m["params"].(map[string]any)
		message := params["message"].(string)
		c.mu.Lock()
		c.asked = append(c.asked, message)
		answer := c.answer
		c.mu.Unlock()
		if answer == nil {
			c.t.Errorf("the server asked a client that cannot show questions: %s", message)
			return false
		}
		if result := answer(message, params["requestedSchema"].(map[string]any)); result != nil {
			if code, _, text := c.status(c.request(context.Background(), "POST", "/mcp", c.encode(map[string]any{"id": m["id"], "result": result}))); code != http.StatusAccepted {
				c.t.Errorf("the answer to a question got %d %s, want 202", code, text)
			}
		}
		return false
	case m["method"] != nil:
		c.mu.Lock()
		c.notes = append(c.notes, m)
		c.mu.Unlock()
		return false
	}
	return true
}

// exchange posts a message and returns the answer: nil when the stream ended
// without one.
func (c *web) exchange(ctx context.Context, m map[string]any) (map[string]any, http.Header, error) {
	resp, err := (&http.Client{Transport: c.site.tr}).Do(c.request(ctx, "POST", "/mcp", c.encode(m)))
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	var reply map[string]any
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(resp.Body)
		if err == nil && len(b) > 0 {
			if err = json.Unmarshal(b, &reply); err != nil {
				err = fmt.Errorf("%d %s: %w", resp.StatusCode, b, err)
			}
		}
		return reply, resp.Header, err
	}
	err = events(resp.Body, func(_, data string) bool {
		var got map[string]any
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			c.t.Errorf("an event has the data %q", data)
			return false
		}
		if c.take(got) {
			reply = got
		}
		return reply == nil
	})
	return reply, resp.Header, err
}

// ask makes a JSON-RPC request and returns its reply. In the newer era it
// answers what comes back as a question.
func (c *web) ask(method string, params map[string]any) map[string]any {
	c.t.Helper()
	return c.askIn(context.Background(), method, params)
}

func (c *web) id() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	return c.next - 1 // zero is an id
}

func (c *web) askIn(ctx context.Context, method string, params map[string]any) map[string]any {
	c.t.Helper()
	reply, err := c.try(ctx, method, params)
	if err != nil || reply == nil {
		c.t.Fatalf("%s: no reply: %v", method, err)
	}
	return reply
}

// try is ask for a request that may end without a reply.
func (c *web) try(ctx context.Context, method string, params map[string]any) (map[string]any, error) {
	if c.modern {
		params = withMeta(params, c.answer != nil)
	}
	reply, _, err := c.exchange(ctx, map[string]any{"id": c.id(), "method": method, "params": params})
	result, _ := reply["result"].(map[string]any)
	if result["resultType"] != "input_required" {
		return reply, err
	}
	again := maps.Clone(params)
	again["requestState"] = result["requestState"]
	responses := map[string]any{}
	for id, v := range result["inputRequests"].(map[string]any) {
		p := v.(map[string]any)["params"].(map[string]any)
		c.mu.Lock()
		c.asked = append(c.asked, p["message"].(string))
		c.mu.Unlock()
		responses[id] = c.answer(p["message"].(string), p["requestedSchema"].(map[string]any))
	}
	again["inputResponses"] = responses
	reply, _, err = c.exchange(ctx, map[string]any{"id": c.id(), "method": method, "params": again})
	return reply, err
}

func (c *web) initialize() map[string]any {
	c.t.Helper()
	caps := map[string]any{}
	if c.answer != nil {
		caps["elicitation"] = map[string]any{}
	}
	reply, header, err := c.exchange(context.Background(), map[string]any{"id": c.id(), "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": caps, "clientInfo": map[string]any{"name": "web", "version": "1"},
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.session = header.Get("Mcp-Session-Id")
	if len(c.session) < 20 {
		c.t.Fatalf("initialize gave the session %q and %v, want an id of 128 bits", c.session, reply)
	}
	c.notify("notifications/initialized", nil)
	return result(c.t, reply)
}

// notify sends a notification.
func (c *web) notify(method string, params map[string]any) {
	c.t.Helper()
	m := map[string]any{"method": method}
	if params != nil {
		m["params"] = params
	}
	if code, _, text := c.status(c.request(context.Background(), "POST", "/mcp", c.encode(m))); code != http.StatusAccepted {
		c.t.Errorf("%s got %d %s, want 202", method, code, text)
	}
}

// tool calls a tool and returns its structured content.
func (c *web) tool(name string, args map[string]any) (content map[string]any, isError bool) {
	c.t.Helper()
	r := result(c.t, c.ask("tools/call", map[string]any{"name": name, "arguments": args}))
	isError, _ = r["isError"].(bool)
	content, _ = r["structuredContent"].(map[string]any)
	return content, isError
}

func (c *web) ok(name string, args map[string]any) map[string]any {
	c.t.Helper()
	content, isError := c.tool(name, args)
	if isError {
		c.t.Fatalf("tools/call %s %v failed: %v", name, args, content)
	}
	return content
}

func (c *web) fails(code, name string, args map[string]any) map[string]any {
	c.t.Helper()
	content, isError := c.tool(name, args)
	e, _ := content["error"].(map[string]any)
	if !isError || e["code"] != code {
		c.t.Fatalf("tools/call %s %v = %v, want the error %s", name, args, content, code)
	}
	return e
}

func (c *web) listed() []string {
	c.t.Helper()
	var names []string
	for _, tool := range objects(result(c.t, c.ask("tools/list", nil))["tools"]) {
		names = append(names, tool["name"].(string))
	}
	return names
}

// heard returns the methods of the notifications that came, and forgets them.
func (c *web) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, n := range c.notes {
		all = append(all, n["method"].(string))
	}
	c.notes = nil
	return all
}

// A listening is a stream that is read in the background.
type listening struct {
	t     *testing.T
	resp  *http.Response
	stop  context.CancelFunc
	lines chan map[string]any // closed with the stream
	kept  []map[string]any    // what came so far, where a test remembers it
}

// open opens a stream: a GET of the older era, or a request that lasts.
func (c *web) open(method, path string, m map[string]any) *listening {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var body []byte
	if m != nil {
		body = c.encode(m)
	}
	l := &listening{t: c.t, resp: c.do(c.request(ctx, method, path, body)), stop: stop, lines: make(chan map[string]any, 256)}
	c.t.Cleanup(stop)
	if l.resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(l.resp.Body)
		c.t.Fatalf("%s %s = %d %s, want a stream", method, path, l.resp.StatusCode, b)
	}
	go func() {
		defer close(l.lines)
		defer l.resp.Body.Close()
		_ = events(l.resp.Body, func(name, data string) bool {
			got := map[string]any{"event": name, "data": data}
			if name == "message" {
				got = nil
				if err := json.Unmarshal([]byte(data), &got); err != nil {
					c.t.Errorf("an event has the data %q", data)
				}
			}
			l.lines <- got
			return true
		})
	}()
	return l
}

// next returns the next message; nil when the stream ended.
func (l *listening) next() map[string]any {
	l.t.Helper()
	select {
	case m := <-l.lines:
		return m
	case <-time.After(20 * time.Second):
		l.t.Fatal("nothing comes on the stream")
		return nil
	}
}

// drain waits for the stream's end.
func (l *listening) drain() {
	l.t.Helper()
	for m := l.next(); m != nil; m = l.next() {
		continue
	}
}

// The whole way in both eras: handshake, list, calls with approval, list
// change, run, artifact; each person's name in the questions and in the log.
func TestHTTPWholeWay(t *testing.T) {
	needShell(t)
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern=%v", modern), func(t *testing.T) {
			w := newWorld(t, triage)
			s := newSite(t, w)
			var c *web
			if modern {
				c = s.newer(tokenAda, decide("once"))
				if r := result(t, c.ask("server/discover", nil)); !strings.Contains(r["instructions"].(string), "- pack_id: triage") {
					t.Errorf("server/discover = %v, want the pack in the instructions", r)
				}
			} else {
				c = s.older(tokenAda, decide("once"))
			}
			if got := len(c.listed()); got != 6 {
				t.Errorf("%d tools, want 6", got)
			}
			opened := c.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			if got := opened["entry_doc"].(map[string]any)["content"]; got != "# Triage\n\nRead docs/steps.md.\n" {
				t.Errorf("open_docs = %q", got)
			}
			c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
			if got := c.heard(); !modern && !slices.Equal(got, []string{"notifications/tools/list_changed"}) {
				t.Errorf("enable_tools sent %q on its stream, want list_changed", got)
			}
			if !slices.Contains(c.listed(), "triage__greet") {
				t.Error("the pack's tool is not listed")
			}
			ran := c.ok("triage__greet", map[string]any{"who": "Ada"})
			if ran["stdout"] != "hello Ada\n" {
				t.Errorf("the run = %v", ran)
			}
			made := c.ok("capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt", "workspace": ran["workspace"]})
			if made["content"] != "made\n" {
				t.Errorf("the artifact = %v", made)
			}
			c.answer = decide("deny")
			c.fails("denied", "capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			if len(c.asked) != 5 || !says(c.asked[0], `for "ada", by the client`) {
				t.Errorf("%d questions, want 5 that name ada: %.300q", len(c.asked), c.asked)
			}
			var got []string
			for _, e := range w.entries() {
				got = append(got, strings.TrimSpace(string(e.Event)+" "+e.Kind+" "+e.Decision+" "+e.Caller))
			}
			want := []string{"decision open once ada", "decision enable once ada", "decision run once ada", "run.start run  ada", "run.end run  ada", "decision read once ada", "decision open deny ada"}
			if !slices.Equal(got, want) {
				t.Errorf("the log has\n%q, want\n%q", got, want)
			}
		})
	}
}
