package servertest

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
	"strings"
	"sync"
	"testing"
	"time"
)

// A Site is an HTTP server on a real socket, and what its clients share.
type Site struct {
	T      *testing.T
	Server *httptest.Server
	// Transport belongs to the clients, so that connections they leave open can
	// be closed.
	Transport *http.Transport

	closing func()
}

// Serve serves a handler until the test ends.
func Serve(t *testing.T, h interface {
	http.Handler
	Close()
}) *Site {
	t.Helper()
	s := &Site{T: t, Server: httptest.NewServer(h), Transport: &http.Transport{MaxIdleConnsPerHost: 200}, closing: h.Close}
	t.Cleanup(func() {
		s.Close()
		s.Transport.CloseIdleConnections()
		s.Server.Close()
	})
	return s
}

// Close stops the server.
func (s *Site) Close() { s.closing() }

// A Client is an HTTP client of either era of the protocol.
type Client struct {
	T     *testing.T
	Site  *Site
	Token string
	// Session is the session id of the older era; empty before Initialize, and
	// in the newer era.
	Session string
	Modern  bool
	// Answer answers a question as the client's user; nil: the client cannot
	// ask.
	Answer func(message string, schema map[string]any) map[string]any

	mu     sync.Mutex
	NextID int              // of the next request
	Asked  []string         // the questions received
	notes  []map[string]any // the notifications received
}

// Client returns a client that has not sent anything.
func (s *Site) Client(token string) *Client { return &Client{T: s.T, Site: s, Token: token} }

// Older returns a client that has done the handshake of the older era.
func (s *Site) Older(token string, answer func(string, map[string]any) map[string]any) *Client {
	s.T.Helper()
	c := s.Client(token)
	c.Answer = answer
	c.Initialize()
	return c
}

// Newer returns a client of 2026-07-28.
func (s *Site) Newer(token string, answer func(string, map[string]any) map[string]any) *Client {
	c := s.Client(token)
	c.Modern, c.Answer = true, answer
	return c
}

// Request returns an HTTP request with the headers of the client's era.
func (c *Client) Request(ctx context.Context, method, path string, body []byte) *http.Request {
	c.T.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.Site.Server.URL+path, bytes.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.Session != "" {
		r.Header.Set("Mcp-Session-Id", c.Session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	if c.Modern {
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

// Do makes a request. The caller closes the response.
func (c *Client) Do(r *http.Request) *http.Response {
	c.T.Helper()
	resp, err := (&http.Client{Transport: c.Site.Transport}).Do(r)
	if err != nil {
		c.T.Fatal(err)
	}
	return resp
}

// Status makes a request and returns the status, headers and body of the
// response.
func (c *Client) Status(r *http.Request) (int, http.Header, string) {
	c.T.Helper()
	// A request that should be refused may begin an endless stream instead.
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	resp := c.Do(r.WithContext(ctx))
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// Encode returns a message in the form that is posted.
func (c *Client) Encode(m map[string]any) []byte {
	c.T.Helper()
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		c.T.Fatal(err)
	}
	return b
}

// Events calls each for the messages of a stream of events until it ends. It
// skips heartbeats.
func Events(body io.Reader, each func(name, data string) bool) error {
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
func (c *Client) take(m map[string]any) bool {
	switch {
	case m["method"] == "elicitation/create":
		params := m["params"].(map[string]any)
		message := params["message"].(string)
		c.mu.Lock()
		c.Asked = append(c.Asked, message)
		answer := c.Answer
		c.mu.Unlock()
		if answer == nil {
			c.T.Errorf("the server asked a client that cannot show questions: %s", message)
			return false
		}
		if result := answer(message, params["requestedSchema"].(map[string]any)); result != nil {
			if code, _, text := c.Status(c.Request(context.Background(), "POST", "/mcp", c.Encode(map[string]any{"id": m["id"], "result": result}))); code != http.StatusAccepted {
				c.T.Errorf("the answer to a question got %d %s, want 202", code, text)
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

// Exchange posts a message and returns the answer; nil if the stream ended
// without one.
func (c *Client) Exchange(ctx context.Context, m map[string]any) (map[string]any, http.Header, error) {
	resp, err := (&http.Client{Transport: c.Site.Transport}).Do(c.Request(ctx, "POST", "/mcp", c.Encode(m)))
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
	err = Events(resp.Body, func(_, data string) bool {
		var got map[string]any
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			c.T.Errorf("an event has the data %q", data)
			return false
		}
		if c.take(got) {
			reply = got
		}
		return reply == nil
	})
	return reply, resp.Header, err
}

func (c *Client) id() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.NextID++
	return c.NextID - 1 // zero is a valid id
}

// Ask makes a JSON-RPC request and returns its reply. In the newer era it
// answers a question that is returned as the result.
func (c *Client) Ask(method string, params map[string]any) map[string]any {
	c.T.Helper()
	reply, err := c.Try(context.Background(), method, params)
	if err != nil || reply == nil {
		c.T.Fatalf("%s: no reply: %v", method, err)
	}
	return reply
}

// Try is Ask for a request that may end without a reply.
func (c *Client) Try(ctx context.Context, method string, params map[string]any) (map[string]any, error) {
	if c.Modern {
		params = WithMeta(params, c.Answer != nil)
	}
	reply, _, err := c.Exchange(ctx, map[string]any{"id": c.id(), "method": method, "params": params})
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
		c.Asked = append(c.Asked, p["message"].(string))
		c.mu.Unlock()
		responses[id] = c.Answer(p["message"].(string), p["requestedSchema"].(map[string]any))
	}
	again["inputResponses"] = responses
	reply, _, err = c.Exchange(ctx, map[string]any{"id": c.id(), "method": method, "params": again})
	return reply, err
}

// Initialize does the handshake of the older era, and returns its result.
func (c *Client) Initialize() map[string]any {
	c.T.Helper()
	caps := map[string]any{}
	if c.Answer != nil {
		caps["elicitation"] = map[string]any{}
	}
	reply, header, err := c.Exchange(context.Background(), map[string]any{"id": c.id(), "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": caps, "clientInfo": map[string]any{"name": "web", "version": "1"},
	}})
	if err != nil {
		c.T.Fatal(err)
	}
	c.Session = header.Get("Mcp-Session-Id")
	if len(c.Session) < 20 {
		c.T.Fatalf("initialize gave the session %q and %v, want an id of 128 bits", c.Session, reply)
	}
	c.Notify("notifications/initialized", nil)
	return Result(c.T, reply)
}

// Notify sends a notification.
func (c *Client) Notify(method string, params map[string]any) {
	c.T.Helper()
	m := map[string]any{"method": method}
	if params != nil {
		m["params"] = params
	}
	if code, _, text := c.Status(c.Request(context.Background(), "POST", "/mcp", c.Encode(m))); code != http.StatusAccepted {
		c.T.Errorf("%s got %d %s, want 202", method, code, text)
	}
}

// Tool calls a tool and returns its structured content.
func (c *Client) Tool(name string, args map[string]any) (content map[string]any, isError bool) {
	c.T.Helper()
	r := Result(c.T, c.Ask("tools/call", map[string]any{"name": name, "arguments": args}))
	isError, _ = r["isError"].(bool)
	content, _ = r["structuredContent"].(map[string]any)
	return content, isError
}

// OK calls a tool that must succeed.
func (c *Client) OK(name string, args map[string]any) map[string]any {
	c.T.Helper()
	content, isError := c.Tool(name, args)
	if isError {
		c.T.Fatalf("tools/call %s %v failed: %v", name, args, content)
	}
	return content
}

// Fails calls a tool that must fail with this code, and returns the error.
func (c *Client) Fails(code, name string, args map[string]any) map[string]any {
	c.T.Helper()
	content, isError := c.Tool(name, args)
	e, _ := content["error"].(map[string]any)
	if !isError || e["code"] != code {
		c.T.Fatalf("tools/call %s %v = %v, want the error %s", name, args, content, code)
	}
	return e
}

// Listed returns the names of the listed tools.
func (c *Client) Listed() []string {
	c.T.Helper()
	var names []string
	for _, tool := range Objects(Result(c.T, c.Ask("tools/list", nil))["tools"]) {
		names = append(names, tool["name"].(string))
	}
	return names
}

// Heard returns the methods of the notifications received, and forgets them.
func (c *Client) Heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, n := range c.notes {
		all = append(all, n["method"].(string))
	}
	c.notes = nil
	return all
}

// A Stream is a stream of events that is read in the background.
type Stream struct {
	t     *testing.T
	resp  *http.Response
	Stop  context.CancelFunc
	Lines chan map[string]any // closed with the stream
}

// Open opens a stream: a GET of the older era, or a request that stays open.
func (c *Client) Open(method, path string, m map[string]any) *Stream {
	c.T.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var body []byte
	if m != nil {
		body = c.Encode(m)
	}
	l := &Stream{t: c.T, resp: c.Do(c.Request(ctx, method, path, body)), Stop: stop, Lines: make(chan map[string]any, 256)}
	c.T.Cleanup(stop)
	if l.resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(l.resp.Body)
		c.T.Fatalf("%s %s = %d %s, want a stream", method, path, l.resp.StatusCode, b)
	}
	go func() {
		defer close(l.Lines)
		defer l.resp.Body.Close()
		_ = Events(l.resp.Body, func(name, data string) bool {
			got := map[string]any{"event": name, "data": data}
			if name == "message" {
				got = nil
				if err := json.Unmarshal([]byte(data), &got); err != nil {
					c.T.Errorf("an event has the data %q", data)
				}
			}
			l.Lines <- got
			return true
		})
	}()
	return l
}

// Next returns the next message; nil if the stream ended.
func (l *Stream) Next() map[string]any {
	l.t.Helper()
	select {
	case m := <-l.Lines:
		return m
	case <-time.After(20 * time.Second):
		l.t.Fatal("nothing comes on the stream")
		return nil
	}
}

// Drain waits for the stream's end.
func (l *Stream) Drain() {
	l.t.Helper()
	for m := l.Next(); m != nil; m = l.Next() {
		continue
	}
}
