package httpd

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// secured serves a site's handler over TLS, with HTTP/2 on request. Our own
// server does not offer HTTP/2, but anyone can use the handler.
func (s *site) secured(t *testing.T) (*servertest.Client, *http.Transport) {
	t.Helper()
	srv := httptest.NewUnstartedServer(s.http)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	tr := &http.Transport{TLSClientConfig: srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone(), ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	c := (&servertest.Site{T: t, Server: srv, Transport: tr}).Client(tokenAda)
	resp := c.Do(c.Request(t.Context(), "GET", "/healthz", nil))
	resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatalf("it speaks %s, want HTTP/2", resp.Proto)
	}
	return c, tr
}

// A deadline set after its request is over has no effect. With HTTP/2 each of
// these once crashed the process: a session that ends while its stream waits for
// news, and a request whose client leaves while it is answered.
func TestHTTPLateDeadline(t *testing.T) {
	const rounds = 200
	for _, second := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", second), func(t *testing.T) {
			s := newSite(t, newWorld(t, ""))
			c := s.Client(tokenAda)
			if second {
				c, _ = s.secured(t)
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for range rounds / 3 {
						in := &servertest.Client{T: t, Site: c.Site, Token: c.Token}
						in.Initialize()
						news := in.Do(in.Request(context.Background(), "GET", "/mcp", nil))
						if code, _, _ := in.Status(in.Request(context.Background(), "DELETE", "/mcp", nil)); code != http.StatusNoContent {
							t.Errorf("DELETE = %d", code)
						}
						_, _ = io.Copy(io.Discard, news.Body)
						news.Body.Close()
					}
				})
			}
			wg.Wait()
			c.Initialize()
			for i := range 8 {
				wg.Go(func() {
					for j := range rounds {
						ctx, leave := context.WithCancel(context.Background())
						// Cancel only after the request was written: Go's HTTP/2
						// client has a race there.
						ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
							time.AfterFunc(time.Duration(j*37%3000)*time.Microsecond, leave)
						}})
						body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d-%d","method":"ping"}`, i, j)
						resp, err := (&http.Client{Transport: c.Site.Transport}).Do(c.Request(ctx, "POST", "/mcp", []byte(body)))
						if err == nil {
							_, _ = io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
						}
						leave()
					}
				})
			}
			wg.Wait()
			c.Ask("ping", nil)
		})
	}
}

// A recorder records which deadlines were set, and checks that none is set too
// late.
type recorder struct {
	http.ResponseWriter
	mu     sync.Mutex
	writes []time.Time
	reads  []time.Time
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, t)
	return nil
}

func (r *recorder) SetReadDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads = append(r.reads, t)
	return nil
}

func (r *recorder) Flush() {}

// The same, deterministically: a stream held after its handler is over sets no
// deadline, and the handler's last deadline bounds what remains to be written.
func TestHTTPDeadlines(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	rec := &recorder{ResponseWriter: httptest.NewRecorder()}
	w := reply.NewWriter(rec)
	st := s.http.newStream(w, true)
	w.End(time.Minute)
	if n := len(rec.writes); n != 1 || time.Until(rec.writes[0]) < 30*time.Second {
		t.Errorf("at its end the handler set %v, want the time for the rest of the answer", rec.writes)
	}
	st.hurry(time.Now())
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	if len(rec.writes) != 1 || len(rec.reads) != 0 {
		t.Errorf("after its end, deadlines were set: %v, %v", rec.writes, rec.reads)
	}
	// Every request begins with both deadlines.
	for _, r := range []*http.Request{
		httptest.NewRequest("POST", "http://evil.com/mcp", bytes.NewReader([]byte(pingBody))),
		httptest.NewRequest("GET", "http://localhost/healthz", nil),
		httptest.NewRequest("POST", "http://localhost/mcp", nil),
	} {
		rec := &recorder{ResponseWriter: httptest.NewRecorder()}
		s.http.ServeHTTP(rec, r)
		if len(rec.writes) < 2 || len(rec.reads) == 0 || rec.writes[0].IsZero() || rec.reads[0].IsZero() {
			t.Errorf("%s %s set %v and %v, want a deadline for each from the beginning, and one for the end", r.Method, r.URL, rec.reads, rec.writes)
		}
	}
}

// A whole answer has a deadline, in addition to those of its pieces: a client
// that reads a little now and then cannot hold it for hours.
func TestHTTPWholeAnswer(t *testing.T) {
	s := newSite(t, newWorld(t, ""))
	const size = 32 << 20 // more than the buffers in between hold
	wrote := map[string]chan error{"/long": make(chan error, 1), "/short": make(chan error, 1)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st := s.http.newStream(w, false)
		st.reads = 3 * time.Second
		st.rate = slowest
		if r.URL.Path == "/short" {
			st.rate = 1 << 30
		}
		wrote[r.URL.Path] <- st.finish(answer{message: make([]byte, size), status: 200})
	}))
	defer srv.Close()
	read := func(path string, whole bool) {
		resp, err := http.Get(srv.URL + path)
		if err != nil {
			t.Error(err)
			return
		}
		// 128 KiB every 20 ms: each piece is in time, and the whole takes 5 s.
		pace := time.NewTicker(20 * time.Millisecond)
		n := int64(0)
		for err == nil {
			<-pace.C
			var more int64
			more, err = io.CopyN(io.Discard, resp.Body, 128<<10)
			n += more
		}
		pace.Stop()
		resp.Body.Close()
		if unsent := <-wrote[path]; (unsent == nil) != whole || (n > size) != whole {
			t.Errorf("%s: the client got %d of %d bytes, and writing them ended with %v", path, n, size+1, unsent)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { read("/long", true) })
	wg.Go(func() { read("/short", false) })
	wg.Wait()
}

// A full connection accepts no writes until the last deadline passes.
type full struct {
	http.ResponseWriter
	begun chan struct{} // closed by the first Flush
	once  sync.Once
	mu    sync.Mutex
	until time.Time
	moved chan struct{} // has a value when until changed
}

func (f *full) SetReadDeadline(time.Time) error { return nil }

func (f *full) SetWriteDeadline(t time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = t
	select {
	case f.moved <- struct{}{}:
	default:
	}
	return nil
}

func (f *full) FlushError() error {
	f.once.Do(func() { close(f.begun) })
	for {
		f.mu.Lock()
		left := time.Until(f.until)
		f.mu.Unlock()
		select {
		case <-f.moved:
		case <-time.After(left):
			return os.ErrDeadlineExceeded
		}
	}
}

// A client that does not even take the beginning of an answer does not keep the
// server from ending, in a session or on a stream.
func TestHTTPEndsWhileAnswersBegin(t *testing.T) {
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	for _, what := range []string{"POST /mcp", "GET /mcp", "GET /sse"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, newWorld(t, ""))
			c := s.Client(tokenAda)
			c.Initialize()
			method, path, _ := strings.Cut(what, " ")
			var body io.Reader
			if method == "POST" {
				body = strings.NewReader(hello)
			}
			r := httptest.NewRequest(method, "http://localhost"+path, body)
			r.Header.Set("Authorization", "Bearer "+tokenAda)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			if method == "GET" {
				r.Header.Set("Mcp-Session-Id", c.Session)
			}
			w := &full{ResponseWriter: httptest.NewRecorder(), begun: make(chan struct{}), moved: make(chan struct{}, 1)}
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.http.ServeHTTP(w, r)
			}()
			<-w.begun
			began := time.Now()
			s.http.Close()
			if took := time.Since(began); took > wire.EndTime+2*wire.FlushTime {
				t.Errorf("Close took %s", took)
			}
			<-done
		})
	}
}

// TLS negotiates HTTP/1.1, whatever the configuration or the client offers.
func TestHTTPNeverNegotiatesHTTP2(t *testing.T) {
	w := newWorld(t, "")
	cert, pool := certificate(t)
	addr, _ := serveOn(t, w, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("TLS agreed on %q, want http/1.1", got)
	}
}

// serveOn serves a world with [Server.Serve] for Ada and Grace, until the test ends.
func serveOn(t *testing.T, w *world, secure *tls.Config, change ...func(*Server)) (addr string, h *Server) {
	t.Helper()
	h, err := New(w.srv, Options{Credentials: []Credential{{Token: tokenAda, Person: "ada"}, {Token: tokenGrace, Person: "grace"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(h)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Serve(ctx, l, secure) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return l.Addr().String(), h
}
