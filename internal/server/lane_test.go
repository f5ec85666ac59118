package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// A lane is a client that speaks one era of the protocol on one transport, in raw
// messages. "$META" in a message stands for the _meta of a request of its era.
type lane struct {
	t      *testing.T
	w      *world
	modern bool
	// own says that each request has its own response, as in Streamable HTTP.
	// Otherwise there is one stream for all.
	own bool
	web *servertest.Client // nil on stdio
	// say sends a message. The function it returns waits for the HTTP status and
	// returns it; on stdio it returns 0.
	say func(message string) (status func() int)
	// leave ends the connection, or the stream of the last message.
	leave func()
	heard chan map[string]any // what the server says, on all streams
	next  int                 // id of the client's next request
}

// onEveryLane runs a test on each transport in each era.
func onEveryLane(t *testing.T, tree string, test func(t *testing.T, l *lane), options ...option) {
	for _, transport := range []string{"stdio", "streamable", "sse"} {
		for _, era := range []string{"older", "newer"} {
			t.Run(transport+" "+era, func(t *testing.T) {
				w := newWorld(t, tree, options...)
				l := &lane{t: t, w: w, modern: era == "newer", heard: make(chan map[string]any, 4096), next: 1000}
				switch transport {
				case "stdio":
					l.heard, l.leave = w.lines, func() { w.in.Close() }
					l.say = func(message string) func() int {
						w.raw(l.fill(message))
						return func() int { return 0 }
					}
				case "streamable":
					l.overStreamable(newSite(t, w))
				default:
					l.overSSE(newSite(t, w))
				}
				test(t, l)
			})
		}
	}
}

func (l *lane) fill(message string) string {
	meta := `"_meta":{"x":1}`
	if l.modern {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"lane","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return strings.ReplaceAll(message, "$META", meta)
}

func (l *lane) overStreamable(s *servertest.Site) {
	l.web, l.own = s.Client(tokenAda), true
	l.web.Modern = l.modern
	var under sync.WaitGroup
	ctx, end := context.WithCancel(context.Background())
	l.t.Cleanup(func() {
		end()
		under.Wait()
	})
	l.say = func(message string) func() int {
		message = l.fill(message)
		one, leave := context.WithCancel(ctx)
		l.leave = leave
		// The headers are those of the message itself, without what surrounds it.
		r := l.web.Request(one, "POST", "/mcp", []byte(strings.Trim(message, "\xef\xbb\xbf\r\n")))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(message)), int64(len(message))
		status := make(chan int, 1)
		under.Go(func() {
			resp, err := (&http.Client{Transport: s.Transport}).Do(r)
			if err != nil {
				status <- 0
				if one.Err() == nil {
					l.t.Errorf("%.100s: %v", message, err)
				}
				return
			}
			defer resp.Body.Close()
			if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
				l.web.Session = id
			}
			status <- resp.StatusCode
			if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
				if err := servertest.Events(resp.Body, func(_, data string) bool { return l.hear([]byte(data)) }); err != nil && one.Err() == nil {
					l.t.Errorf("%.100s: %v", message, err)
				}
				return
			}
			if body, err := io.ReadAll(resp.Body); err == nil && len(body) > 0 {
				l.hear(body)
			}
		})
		return sync.OnceValue(func() int { return <-status })
	}
}

func (l *lane) overSSE(s *servertest.Site) {
	o := s.SSE(tokenAda)
	l.web, l.leave, l.heard = o.Client, o.Stream.Stop, o.Stream.Lines
	l.say = func(message string) func() int {
		message = l.fill(message)
		code, _, body := o.Status(o.Request(l.t.Context(), "POST", o.Path, []byte(message)))
		if code != http.StatusAccepted {
			l.hear([]byte(body))
		}
		return func() int { return code }
	}
}

func (l *lane) hear(data []byte) bool {
	var m map[string]any
	if err := json.Unmarshal(bytes.TrimSpace(data), &m); err != nil {
		l.t.Errorf("the server said %.200q: %v", data, err)
	}
	l.heard <- m
	return true
}

// receive returns the server's next message.
func (l *lane) receive() map[string]any {
	l.t.Helper()
	select {
	case m, ok := <-l.heard:
		if !ok {
			l.t.Fatal("the server closed the connection")
		}
		return m
	case <-time.After(20 * time.Second):
		l.t.Fatal("the server says nothing")
		return nil
	}
}

// initialize does the handshake, if the era has one.
func (l *lane) initialize(capabilities string) {
	l.t.Helper()
	if l.modern {
		return
	}
	l.say(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"lane","version":"1"}}}`)
	if m := l.receive(); m["id"] != "hello" || m["result"] == nil {
		l.t.Fatalf("initialize = %v", m)
	}
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)()
}

// serves makes sure that the server goes on: the next message is the answer to a new
// request.
func (l *lane) serves(after string) {
	l.t.Helper()
	l.next++
	l.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{$META}}`, l.next))
	m := l.receive()
	if r, _ := m["result"].(map[string]any); m["id"] != float64(l.next) || len(objects(r["tools"])) != 6 {
		l.t.Fatalf("after %s, the next message is %.300v, want the list of 6 tools for %d", after, m, l.next)
	}
}

// cancel cancels a request in the way of the lane's era and transport: the newer era
// closes the request's stream, if it has its own.
func (l *lane) cancel(id string) {
	if l.own && l.modern {
		l.leave()
		return
	}
	l.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)()
}
