package httpd

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// A client that stops reading its stream loses it, on every HTTP transport,
// without affecting others. See TestNotRead and TestPiledUp for stdio.
func TestStreamsOfStalledClients(t *testing.T) {
	const head = "Host: localhost\r\nAuthorization: Bearer " + tokenAda + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	for name, x := range map[string]struct {
		request func(good *servertest.Client) string
		left    func(s *site, good *servertest.Client) int // open streams
	}{
		"news of a session": {
			func(good *servertest.Client) string {
				return "GET /mcp HTTP/1.1\r\n" + head + "Mcp-Session-Id: " + good.Session + "\r\n\r\n"
			},
			func(s *site, good *servertest.Client) int {
				hs := s.http.sessions.byID[good.Session]
				hs.news.mu.Lock()
				defer hs.news.mu.Unlock()
				return len(hs.news.waiting)
			},
		},
		"subscriptions/listen": {
			func(good *servertest.Client) string {
				body := string(good.Encode(map[string]any{"id": 1, "method": "subscriptions/listen", "params": withMeta(map[string]any{"notifications": map[string]any{"toolsListChanged": true}}, false)}))
				return "POST /mcp HTTP/1.1\r\n" + head + "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body
			},
			func(s *site, _ *servertest.Client) int {
				c := s.http.callers[0]
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.inFlight
			},
		},
		"HTTP+SSE": {
			func(*servertest.Client) string { return "GET /sse HTTP/1.1\r\n" + head + "\r\n" },
			func(s *site, _ *servertest.Client) int {
				s.http.sse.mu.Lock()
				defer s.http.sse.mu.Unlock()
				return len(s.http.sse.byID)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, triage)
			s := newSite(t, w)
			s.http.reads, s.http.beat = 500*time.Millisecond, time.Millisecond
			// The buffers in between are soon full.
			small := httptest.NewUnstartedServer(s.http)
			small.Config.ConnState = func(c net.Conn, state http.ConnState) {
				if state == http.StateNew {
					_ = c.(*net.TCPConn).SetWriteBuffer(1)
				}
			}
			small.Start()
			t.Cleanup(small.Close)
			good := s.Older(tokenAda, decide("once"))
			conn, err := net.Dial("tcp", strings.TrimPrefix(small.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			_ = conn.(*net.TCPConn).SetReadBuffer(1)
			if _, err := io.WriteString(conn, x.request(good)); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 ") {
				t.Fatalf("the stream begins with %q, %v", line, err)
			}
			until(t, "the stream has ended", func() bool { return x.left(s, good) == 0 })
			good.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
		})
	}
}
