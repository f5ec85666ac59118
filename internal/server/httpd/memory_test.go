package httpd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// counted returns what a caller's requests use now.
func (c *caller) counted() (inFlight, held, answers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight, c.held, c.answers
}

// A counting host counts the resource reads that it received, and those that it
// answered.
type counting struct {
	*server.Server
	given, answered atomic.Int64
}

func (c *counting) Reply(ctx context.Context, m wire.Message) mcp.JSONRPCMessage {
	if m.Method != string(mcp.MethodResourcesRead) {
		return c.Server.Reply(ctx, m)
	}
	c.given.Add(1)
	defer c.answered.Add(1)
	return c.Server.Reply(ctx, m)
}

// Unread answers are made a few at a time: a client that repeatedly asks for a
// large file waits, and nobody else does.
func TestHTTPAnswersCount(t *testing.T) {
	w := newWorld(t, triage, everyFile())
	w.put("triage/docs/large.bin", strings.Repeat("\x00\xff", 4<<20), 0o644)
	host := &counting{Server: w.srv}
	s := newSiteOf(t, w, host)
	ada := s.http.callers[0]
	const each = 11 << 20 // 8 MiB in base64; more than the buffers in between hold
	ada.room = 3 * each
	read := map[string]any{"id": 1, "method": "resources/read", "params": withMeta(map[string]any{"uri": "skill://triage/docs/large.bin"}, false)}
	c := s.Newer(tokenAda, nil)
	body := c.Encode(read)
	var conns []net.Conn
	addr := strings.TrimPrefix(s.Server.URL, "http://")
	// Three answers are kept, four wait for room and take all remaining places
	// for such requests, and the last request is not processed.
	const clients = 8
	for range clients {
		conn := dial(t, addr)
		r := c.Request(t.Context(), "POST", "/mcp", body)
		r.Header.Set("Accept", "application/json")
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	until(t, "three answers wait for their clients, and four for room", func() bool {
		inFlight, _, answers := ada.counted()
		return inFlight == clients && answers > 2*each && host.answered.Load() == clients-1
	})
	if n := host.given.Load(); n != clients-1 {
		t.Errorf("%d readings were begun, want %d", n, clients-1)
	}
	if _, _, answers := ada.counted(); answers > ada.room {
		t.Errorf("%d bytes of answers wait, want at most %d", answers, ada.room)
	}
	// Meanwhile small requests are answered, and so are another person's.
	if got := c.Listed(); len(got) == 0 {
		t.Error("no tools")
	}
	if got := objects(result(t, s.Newer(tokenGrace, nil).Ask("resources/read", map[string]any{"uri": "skill://triage/docs/large.bin"}))["contents"]); len(got[0]["blob"].(string)) < each-1<<20 {
		t.Error("another person does not get the file")
	}
	// When they read, each gets the whole answer in turn; one leaves instead.
	conns[0].Close()
	var wg sync.WaitGroup
	for _, conn := range conns[1:] {
		wg.Go(func() {
			_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a busy machine took the first one
			got, err := io.ReadAll(io.LimitReader(conn, each-1<<20))
			if err != nil || len(got) < each-1<<20 || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
				t.Errorf("%d bytes came, %v, %.40q", len(got), err, got)
			}
			conn.Close()
		})
	}
	wg.Wait()
	until(t, "nothing is held", func() bool {
		inFlight, held, answers := ada.counted()
		return inFlight+held+answers == 0
	})
	// All places are free again too: that many requests get the file again.
	for range clients {
		result(t, c.Ask("resources/read", map[string]any{"uri": "skill://triage/docs/large.bin"}))
	}
}

// A connection of HTTP+SSE counts toward its credential's bounds.
func TestSSEBounds(t *testing.T) {
	w := newWorld(t, triage, everyFile(), everywhere(20*time.Second))
	w.put("triage/docs/large.bin", strings.Repeat("\x00\xff", 4<<20), 0o644)
	host := &counting{Server: w.srv}
	s := newSiteOf(t, w, host)
	ada := s.http.callers[0]
	// A request counts until it is answered, not until it is accepted.
	o := s.SSE(tokenAda)
	o.Initialize()
	o.Send(map[string]any{"id": 1, "method": "tools/call", "params": map[string]any{"name": "capability_packs_enable_tools", "arguments": map[string]any{"pack_id": "triage"}}})
	code := w.pending(1)[0].Code
	if inFlight, held, _ := ada.counted(); inFlight != 1 || held == 0 {
		t.Errorf("%d requests with %d bytes are under way, want one", inFlight, held)
	}
	w.decide(code, queue.Once)
	o.Reply()
	until(t, "it counts no longer", func() bool {
		inFlight, held, _ := ada.counted()
		return inFlight+held == 0
	})
	// Large answers count toward the credential's, at the latest until the
	// connection ends.
	ada.room = 20 << 20
	silent := s.silent(t)
	const readings = 6
	for i := range readings {
		silent.Send(map[string]any{"id": i, "method": "resources/read", "params": withMeta(map[string]any{"uri": "skill://triage/docs/large.bin"}, false)})
	}
	until(t, "an answer waits for its client, and the next four for room", func() bool {
		_, _, answers := ada.counted()
		return answers > 0 && host.answered.Load() == readings-1
	})
	if n := host.given.Load(); n != readings-1 {
		t.Errorf("%d readings were begun, want %d", n, readings-1)
	}
	if _, _, answers := ada.counted(); answers > ada.room {
		t.Errorf("%d bytes of answers wait, want at most %d", answers, ada.room)
	}
	silent.conn.Close()
	until(t, "nothing is held", func() bool {
		inFlight, held, answers := ada.counted()
		return inFlight+held+answers == 0
	})
	// Their number is bounded.
	for range maxSSE - 1 {
		s.SSE(tokenAda)
	}
	r := o.Request(t.Context(), "GET", "/sse", nil)
	if status, h, _ := o.Status(r); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("one connection too many = %d, want 503", status)
	}
	s.SSE(tokenGrace)
}

// A mute is a connection of HTTP+SSE that reads only the address to post to.
type mute struct {
	*servertest.SSE
	conn net.Conn
}

func (s *site) silent(t *testing.T) *mute {
	t.Helper()
	conn := dial(t, strings.TrimPrefix(s.Server.URL, "http://"))
	_ = conn.(*net.TCPConn).SetReadBuffer(1)
	fmt.Fprintf(conn, "GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", tokenAda)
	var got strings.Builder
	for !strings.Contains(got.String(), "sessionId=") || !strings.HasSuffix(got.String(), "\n\n") {
		if _, err := io.CopyN(&got, conn, 1); err != nil {
			t.Fatal(err)
		}
	}
	_, path, _ := strings.Cut(got.String(), "data: ")
	return &mute{SSE: &servertest.SSE{Client: s.Client(tokenAda), Path: strings.TrimSpace(path)}, conn: conn}
}

// A stuck library never answers, whatever happens to the request.
type stuck struct {
	server.Library
	on, off chan struct{}
	waits   atomic.Bool // a call waits
}

func (s *stuck) Catalog(ctx context.Context) *packs.Catalog {
	select {
	case <-s.on:
		s.waits.Store(true)
		<-s.off
	default:
	}
	return s.Library.Catalog(ctx)
}

// A call that does not end when it must is left behind, and its resources count
// until it ends.
func TestHTTPLeftBehind(t *testing.T) {
	for _, modern := range []bool{false, true} {
		lib := &stuck{on: make(chan struct{}), off: make(chan struct{})}
		w := newWorld(t, triage, func(s *setup) { lib.Library, s.server.Library = s.server.Library, lib })
		s := newSite(t, w)
		s.http.leaves = 10 * time.Millisecond
		c := s.Newer(tokenAda, nil)
		if !modern {
			c = s.Older(tokenAda, nil)
		}
		ada := s.http.callers[0]
		close(lib.on)
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.Try(ctx, "tools/call", map[string]any{"name": "capability_packs_list", "arguments": map[string]any{}})
			done <- err
		}()
		until(t, "it is worked on", lib.waits.Load)
		leave()
		<-done
		w.awaitText("left behind")
		if inFlight, held, _ := ada.counted(); inFlight != 1 || held == 0 {
			t.Errorf("modern %v: %d requests with %d bytes count, want the one that still runs", modern, inFlight, held)
		}
		// A chat's empty workspace is removed with it.
		chats := func() int {
			all, err := os.ReadDir(w.workspaces)
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		s.http.expire(time.Now().Add(2 * time.Hour))
		if chats() != 1 {
			t.Errorf("modern %v: its chat ended", modern)
		}
		close(lib.off)
		until(t, "nothing is held", func() bool {
			inFlight, held, _ := ada.counted()
			return inFlight+held == 0
		})
		s.http.expire(time.Now().Add(2 * time.Hour))
		if n := chats(); n != 0 {
			t.Errorf("modern %v: %d chats are left", modern, n)
		}
	}
}

// A call that has ended is not left behind, however late it is checked.
func TestHTTPNotLeftBehind(t *testing.T) {
	over, open := make(chan struct{}), make(chan struct{})
	close(over)
	for range 100 { // select chooses among ready cases at random
		if isLeft(over, over) {
			t.Fatal("a call that has ended is said to be left behind")
		}
	}
	if isLeft(over, open) || !isLeft(open, over) {
		t.Error("a call is left behind that has ended, or is not that does not end")
	}
}
