package server

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The conversations of testdata/wire are the same over HTTP, message by message,
// except for what belongs to a connection.
func TestWireHTTP(t *testing.T) {
	if *update {
		t.Skip("the conversations are written from standard input and output")
	}
	for name, over := range map[string]struct {
		files []string
		of    func(*testing.T, *servertest.Site) *talker
	}{
		// Over /mcp each era has its own chat, and nothing is refused because of its
		// order.
		"streamable": {[]string{
			"legacy", "legacy_cancel", "legacy_cannot_ask", "legacy_doubt", "legacy_unasked", "modern", "modern_cancel", "modern_denied",
			"legacy_prompts", "legacy_resources", "legacy_skills", "modern_prompts", "modern_resources", "modern_skills",
		}, streamable},
		"sse": {[]string{
			"both", "legacy", "legacy_cancel", "legacy_cannot_ask", "legacy_doubt", "legacy_unasked", "modern", "modern_cancel", "modern_denied",
			"legacy_prompts", "legacy_resources", "legacy_skills", "modern_prompts", "modern_resources", "modern_skills", "modern_versions",
		}, overSSE},
	} {
		for _, file := range over.files {
			t.Run(name+"/"+file, func(t *testing.T) {
				file := filepath.Join("testdata", "wire", file+".txtar")
				// The conversations are about the protocol: here prompts act without
				// a question.
				w := worldOf(t, file, func(s *setup) { s.gate.Prompts = gate.PromptsAllow })
				s := newSite(t, w, func(o *httpd.Options) { o.Credentials = []httpd.Credential{{Token: tokenAda}} })
				talker := over.of(t, s)
				talker.w = w
				converse(t, file, talker)
			})
		}
	}
}

// overSSE sends each line on a connection of HTTP+SSE.
func overSSE(t *testing.T, s *servertest.Site) *talker {
	o := s.SSE(tokenAda)
	return &talker{
		lines: o.Stream.Lines, end: s.Close,
		say: func(line string) {
			if code, _, text := o.Status(o.Request(t.Context(), "POST", o.Path, []byte(line))); code != 202 {
				t.Errorf("%s = %d %s, want 202", line, code, text)
			}
		},
	}
}

// streamable posts each line, and receives what comes on all the streams.
func streamable(t *testing.T, s *servertest.Site) *talker {
	c := s.Client(tokenAda)
	lines := make(chan map[string]any, 64)
	var under sync.WaitGroup
	open := make(map[string]context.CancelFunc) // :: id of a request of the newer era → closes its stream
	post := func(ctx context.Context, line string, modern bool) {
		at := inEra(c, modern)
		resp, err := (&http.Client{Transport: s.Transport}).Do(at.Request(ctx, "POST", "/mcp", []byte(line)))
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("%s: %v", line, err)
			}
			return
		}
		defer resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			c.Session = id
		}
		hear := func(_, data string) bool {
			var m map[string]any
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Errorf("%s came: %v", data, err)
			}
			lines <- m
			return true
		}
		switch kind := resp.Header.Get("Content-Type"); {
		case strings.HasPrefix(kind, "text/event-stream"):
			if err := servertest.Events(resp.Body, hear); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		case kind == "application/json":
			var m map[string]any
			if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
				t.Error(err)
			}
			lines <- m
		case resp.StatusCode != 202:
			t.Errorf("%s = %d", line, resp.StatusCode)
		}
	}
	return &talker{
		lines: lines, loose: true,
		end: func() {
			under.Wait()
			close(lines)
		},
		say: func(line string) {
			var m struct {
				ID     json.RawMessage
				Method string
				Params json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if stop := open[wire.ReadParams(m.Params).CancelledID()]; stop != nil && m.Method == "notifications/cancelled" {
				stop() // in the newer era, this cancels the request
				return
			}
			ctx, stop := context.WithCancel(context.Background())
			t.Cleanup(stop)
			modern := wire.ReadParams(m.Params).IsModern()
			if modern {
				open[string(m.ID)] = stop
			}
			if m.Method == "initialize" || m.Method == "" || m.ID == nil {
				post(ctx, line, modern) // what follows depends on it
				return
			}
			under.Go(func() { post(ctx, line, modern) })
		},
	}
}

// inEra returns the client restricted to one era.
func inEra(c *servertest.Client, modern bool) *servertest.Client {
	return &servertest.Client{T: c.T, Site: c.Site, Token: c.Token, Session: c.Session, Modern: modern}
}
