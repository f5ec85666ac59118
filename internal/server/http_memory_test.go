package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// everyFile lets every file be read.
func everyFile() option {
	return func(s *setup) {
		s.gate.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"read"}, Where: "config.yaml:1"}}
	}
}

// counted is what a caller's requests take up now.
func (c *caller) counted() (inFlight, held, answers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight, c.held, c.answers
}

// Answers that nobody reads are made a few at a time: whoever asks for the same
// large file again and again waits, and nobody else does.
func TestHTTPAnswersCount(t *testing.T) {
	w := newWorld(t, triage, everyFile())
	w.put("triage/docs/large.bin", strings.Repeat("\x00\xff", 4<<20), 0o644)
	s := newSite(t, w)
	ada := s.http.callers[0]
	const each = 11 << 20 // 8 MiB in base64; more than what lies between the two
	ada.room = 3 * each
	read := map[string]any{"id": 1, "method": "resources/read", "params": withMeta(map[string]any{"uri": "skill://triage/docs/large.bin"}, false)}
	c := s.newer(tokenAda, nil)
	body := c.encode(read)
	var conns []net.Conn
	addr := strings.TrimPrefix(s.srv.URL, "http://")
	const clients = 8
	for range clients {
		conn := dial(t, addr)
		r := c.request(t.Context(), "POST", "/mcp", body)
		r.Header.Set("Accept", "application/json")
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	s.until("two answers wait for their clients, and the next ones for room", func() bool {
		inFlight, _, answers := ada.counted()
		return inFlight == clients && answers > each && len(ada.slots.Heavy) == cap(ada.slots.Heavy)
	})
	if _, _, answers := ada.counted(); answers > ada.room {
		t.Errorf("%d bytes of answers wait, want at most %d", answers, ada.room)
	}
	// What is small is answered meanwhile, and so is what another person asks for.
	if got := c.listed(); len(got) == 0 {
		t.Error("no tools")
	}
	if got := contentsOf(t, s.newer(tokenGrace, nil).ask("resources/read", map[string]any{"uri": "skill://triage/docs/large.bin"})); len(got["blob"].(string)) < each-1<<20 {
		t.Error("another person does not get the file")
	}
	// When they read, each gets all of it when its turn comes; one leaves instead.
	conns[0].Close()
	var wg sync.WaitGroup
	for _, conn := range conns[1:] {
		wg.Go(func() {
			got, err := io.ReadAll(io.LimitReader(conn, each-1<<20))
			if err != nil || len(got) < each-1<<20 || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") {
				t.Errorf("%d bytes came, %v, %.40q", len(got), err, got)
			}
			conn.Close()
		})
	}
	wg.Wait()
	s.until("nothing is held", func() bool {
		inFlight, held, answers := ada.counted()
		return inFlight+held+answers+len(ada.slots.Heavy)+len(ada.slots.Work) == 0
	})
}

// A connection of HTTP+SSE has no bounds beside its credential's.
func TestSSEBounds(t *testing.T) {
	w := newWorld(t, triage, everyFile(), everywhere(20*time.Second))
	w.put("triage/docs/large.bin", strings.Repeat("\x00\xff", 4<<20), 0o644)
	s := newSite(t, w)
	ada := s.http.callers[0]
	// A request counts until it is answered, not until it is accepted.
	o := s.old(tokenAda)
	o.initialize()
	o.send(map[string]any{"id": 1, "method": "tools/call", "params": map[string]any{"name": "capability_packs_enable_tools", "arguments": map[string]any{"pack_id": "triage"}}})
	code := w.pending(1)[0].Code
	if inFlight, held, _ := ada.counted(); inFlight != 1 || held == 0 {
		t.Errorf("%d requests with %d bytes are under way, want one", inFlight, held)
	}
	w.decide(code, queue.Once)
	o.reply()
	s.until("it counts no longer", func() bool {
		inFlight, held, _ := ada.counted()
		return inFlight+held == 0
	})
	// Large answers count with those of the credential, until the end of the
	// connection at the latest.
	ada.room = 20 << 20
	silent := s.silent(t)
	for i := range 6 {
		silent.send(map[string]any{"id": i, "method": "resources/read", "params": withMeta(map[string]any{"uri": "skill://triage/docs/large.bin"}, false)})
	}
	s.until("an answer waits for its client, and the next ones for room", func() bool {
		_, _, answers := ada.counted()
		return answers > 0 && len(ada.slots.Heavy) == cap(ada.slots.Heavy)
	})
	if _, _, answers := ada.counted(); answers > ada.room {
		t.Errorf("%d bytes of answers wait, want at most %d", answers, ada.room)
	}
	silent.conn.Close()
	s.until("nothing is held", func() bool {
		inFlight, held, answers := ada.counted()
		return inFlight+held+answers+len(ada.slots.Heavy) == 0
	})
	// And there are not any number of them.
	for range maxSSE - 1 {
		s.old(tokenAda)
	}
	r := o.request(t.Context(), "GET", "/sse", nil)
	if status, h, _ := o.status(r); status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("one connection too many = %d, want 503", status)
	}
	s.old(tokenGrace)
}

// A mute is a connection of HTTP+SSE that reads nothing but where to post.
type mute struct {
	*old
	conn net.Conn
}

func (s *site) silent(t *testing.T) *mute {
	t.Helper()
	conn := dial(t, strings.TrimPrefix(s.srv.URL, "http://"))
	_ = conn.(*net.TCPConn).SetReadBuffer(1)
	fmt.Fprintf(conn, "GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", tokenAda)
	var got strings.Builder
	for !strings.Contains(got.String(), "sessionId=") || !strings.HasSuffix(got.String(), "\n\n") {
		if _, err := io.CopyN(&got, conn, 1); err != nil {
			t.Fatal(err)
		}
	}
	_, path, _ := strings.Cut(got.String(), "data: ")
	return &mute{old: &old{web: s.client(tokenAda), path: strings.TrimSpace(path)}, conn: conn}
}

// A stuck library gives nothing, whatever becomes of the request.
type stuck struct {
	Library
	on, off chan struct{}
}

func (s *stuck) Catalog(ctx context.Context) *packs.Catalog {
	select {
	case <-s.on:
		<-s.off
	default:
	}
	return s.Library.Catalog(ctx)
}

// A call that does not end when it has to is left behind, and takes up what it
// took until it ends.
func TestHTTPLeftBehind(t *testing.T) {
	for _, modern := range []bool{false, true} {
		lib := &stuck{on: make(chan struct{}), off: make(chan struct{})}
		w := newWorld(t, triage)
		lib.Library, w.srv.opts.Library = w.lib, lib
		s := newSite(t, w)
		s.http.leaves = 10 * time.Millisecond
		c := s.newer(tokenAda, nil)
		if !modern {
			c = s.older(tokenAda, nil)
		}
		ada := s.http.callers[0]
		close(lib.on)
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.try(ctx, "tools/call", map[string]any{"name": "capability_packs_list", "arguments": map[string]any{}})
			done <- err
		}()
		s.until("it is worked on", func() bool { return len(ada.slots.Work) == 1 })
		leave()
		<-done
		w.awaitText("left behind")
		if inFlight, held, _ := ada.counted(); inFlight != 1 || held == 0 {
			t.Errorf("modern %v: %d requests with %d bytes count, want the one that still runs", modern, inFlight, held)
		}
		chats := len(w.srv.everyChat())
		s.http.expire(time.Now().Add(2 * time.Hour))
		if got := len(w.srv.everyChat()); got != chats {
			t.Errorf("modern %v: its chat ended", modern)
		}
		close(lib.off)
		s.until("nothing is held", func() bool {
			inFlight, held, _ := ada.counted()
			return inFlight+held+len(ada.slots.Work) == 0
		})
		s.http.expire(time.Now().Add(2 * time.Hour))
		if got := len(w.srv.everyChat()); got != chats-1 {
			t.Errorf("modern %v: %d chats are left of %d, want one less", modern, got, chats)
		}
	}
}

// A call that has ended is not left behind, however late it is looked at.
func TestHTTPNotLeftBehind(t *testing.T) {
	over, open := make(chan struct{}), make(chan struct{})
	close(over)
	for range 100 { // select takes one of several at random
		if isLeft(over, over) {
			t.Fatal("a call that has ended is said to be left behind")
		}
	}
	if isLeft(over, open) || !isLeft(open, over) {
		t.Error("a call is left behind that has ended, or is not that does not end")
	}
}

// awaitText waits until something is in the log of the server.
func (w *world) awaitText(text string) {
	w.t.Helper()
	(&site{w: w}).until("the log has "+text, func() bool { return strings.Contains(w.log.String(), text) })
}
