package server

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// Many clients at once, with approvals: no reply is lost, and nothing of them
// is left when they are gone. HTTP_SOAK=60s makes it a hundred, for a minute, and
// prints how the throughput compares with a bare server of the library's.
func TestHTTPLoad(t *testing.T) {
	clients, long := 20, 300*time.Millisecond
	if soak := os.Getenv("HTTP_SOAK"); soak != "" {
		d, err := time.ParseDuration(soak)
		if err != nil {
			t.Fatal(err)
		}
		clients, long = 100, d
	}
	w := newWorld(t, triage)
	s := newSite(t, w)
	s.tr.MaxIdleConnsPerHost = 2 * clients
	s.older(tokenAda, nil).ask("ping", nil) // what is made once is made
	s.tr.CloseIdleConnections()
	var before, after runtime.MemStats
	settled := func(m *runtime.MemStats) {
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(m)
	}
	idle := runtime.NumGoroutine()
	settled(&before)

	var calls atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	end := began.Add(long)
	for i := range clients {
		wg.Go(func() {
			token := []string{tokenAda, tokenGrace}[i%2]
			for time.Now().Before(end) {
				c := s.newer(token, decide("once"))
				if i%4 < 2 {
					c = s.older(token, decide("once"))
				}
				for range 20 {
					c.ok("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
					c.ask("tools/list", nil)
					calls.Add(2)
				}
				if len(c.asked) != 20 {
					t.Errorf("%d questions for 20 calls", len(c.asked))
				}
				if !c.modern {
					if code, _, _ := c.status(c.request(context.Background(), "DELETE", "/mcp", nil)); code != 204 {
						t.Errorf("DELETE = %d", code)
					}
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	s.http.expire(time.Now().Add(2 * time.Hour))
	s.http.expire(time.Now().Add(2 * time.Hour))
	s.tr.CloseIdleConnections()
	s.until("the goroutines are gone", func() bool { return runtime.NumGoroutine() <= idle+2 })
	settled(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d clients for %s: %d calls, %.0f a second; the heap grew by %d KiB", clients, took.Round(time.Millisecond), calls.Load(), float64(calls.Load())/took.Seconds(), grown>>10)
	if grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if os.Getenv("HTTP_SOAK") == "" {
		return
	}
	bare := mcpserver.NewMCPServer("bare", "1", mcpserver.WithToolCapabilities(true))
	bare.AddTool(mcp.NewTool("capability_packs_list"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("{}"), nil
	})
	other := &site{w: w, srv: httptest.NewServer(mcpserver.NewStreamableHTTPServer(bare)), tr: s.tr}
	defer other.srv.Close()
	ours, theirs := rate(t, s, clients), rate(t, other, clients)
	t.Logf("list: %.0f calls a second, a bare server of the library's %.0f: %s", ours, theirs, fmt.Sprintf("%.2f of it", ours/theirs))
}

// rate is how many calls a second of a call that asks nobody a server answers.
func rate(t *testing.T, s *site, clients int) float64 {
	t.Helper()
	const long = 5 * time.Second
	var calls atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(long)
	for range clients {
		wg.Go(func() {
			c := s.older(tokenAda, nil)
			for time.Now().Before(end) {
				c.ask("tools/call", map[string]any{"name": "capability_packs_list", "arguments": map[string]any{}})
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(calls.Load()) / long.Seconds()
}
