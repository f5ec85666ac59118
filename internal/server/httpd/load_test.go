package httpd

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// Many clients at once, with approvals: no reply is lost, and the clients leave
// nothing behind. A bare server of the library gets the same calls from the same
// clients, in turns, and the test prints how the two compare. HTTP_SOAK=60s runs
// a hundred clients for a minute.
func TestHTTPLoad(t *testing.T) {
	clients, long, turns := 20, 300*time.Millisecond, 1
	if soak := os.Getenv("HTTP_SOAK"); soak != "" {
		d, err := time.ParseDuration(soak)
		if err != nil {
			t.Fatal(err)
		}
		clients, long, turns = 100, d, 4
	}
	w := newWorld(t, triage)
	s := newSite(t, w)
	s.Transport.MaxIdleConnsPerHost = 2 * clients
	s.Older(tokenAda, nil).Ask("ping", nil) // creates what is created once
	s.Transport.CloseIdleConnections()
	var before, after runtime.MemStats
	settled := func(m *runtime.MemStats) {
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(m)
	}
	idle := runtime.NumGoroutine()
	settled(&before)

	var ours, theirs rate
	for range turns {
		ours.add(load(t, s.Site, clients, long/time.Duration(turns)))
		bare := &servertest.Site{T: t, Server: httptest.NewServer(bareServer()), Transport: s.Transport}
		theirs.add(load(t, bare, clients, long/time.Duration(turns)))
		s.Transport.CloseIdleConnections()
		bare.Server.Close()
	}
	s.http.expire(time.Now().Add(2 * time.Hour))
	s.http.expire(time.Now().Add(2 * time.Hour))
	s.Transport.CloseIdleConnections()
	until(t, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= idle+2 })
	settled(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d clients for %s: %d calls, half of them asked about; the heap grew by %d KiB", clients, ours.took.Round(time.Millisecond), ours.calls, grown>>10)
	t.Logf("%.0f calls a second, a bare server of the library's %.0f: %.2f of it", ours.perSecond(), theirs.perSecond(), ours.perSecond()/theirs.perSecond())
	if grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// A rate is a number of calls and the time they took.
type rate struct {
	calls int64
	took  time.Duration
}

func (r *rate) add(more rate) { r.calls, r.took = r.calls+more.calls, r.took+more.took }

func (r *rate) perSecond() float64 { return float64(r.calls) / r.took.Seconds() }

// load runs clients of both eras that connect, call with approvals, list, and
// leave, for a given time.
func load(t *testing.T, s *servertest.Site, clients int, long time.Duration) rate {
	t.Helper()
	var calls atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	end := began.Add(long)
	for i := range clients {
		wg.Go(func() {
			token := []string{tokenAda, tokenGrace}[i%2]
			for time.Now().Before(end) {
				c := s.Newer(token, decide("once"))
				if i%4 < 2 {
					c = s.Older(token, decide("once"))
				}
				for range 20 {
					c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
					c.Ask("tools/list", nil)
					calls.Add(2)
				}
				if len(c.Asked) != 20 {
					t.Errorf("%d questions for 20 calls", len(c.Asked))
				}
				if !c.Modern {
					if code, _, _ := c.Status(c.Request(context.Background(), "DELETE", "/mcp", nil)); code != 204 && code != 200 {
						t.Errorf("DELETE = %d", code)
					}
				}
			}
		})
	}
	wg.Wait()
	return rate{calls.Load(), time.Since(began)}
}

// bareServer is the library's server with six tools that do nothing, one of
// which asks first: no packs, no gate, no log, no token.
func bareServer() *mcpserver.StreamableHTTPServer {
	bare := mcpserver.NewMCPServer("bare", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithElicitation())
	done := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructured(map[string]any{"entry_doc": map[string]any{"path": "SKILL.md", "content": "# Triage\n\nRead docs/steps.md.\n"}}, "{}"), nil
	}
	for _, name := range []string{"capability_packs_list", "capability_packs_read_file", "capability_packs_enable_tools", "capability_packs_call_tool", "capability_packs_exec_best_effort"} {
		bare.AddTool(mcp.NewTool(name), done)
	}
	bare.AddTool(mcp.NewTool("capability_packs_open_docs", mcp.WithString("pack_id", mcp.Required())), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer := mcpserver.ElicitationResponse(r.Params.InputResponses, "approval"); answer != nil && answer.Action == mcp.ElicitationResponseActionAccept {
			return done(ctx, r)
		}
		return mcpserver.NewInputRequestBuilder("state").Elicit("approval", mcp.ElicitationParams{
			Message:         "Open the documents of pack triage?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"decision": map[string]any{"type": "string"}}},
		}).ToolResult(), nil
	})
	return mcpserver.NewStreamableHTTPServer(bare, mcpserver.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)))
}
