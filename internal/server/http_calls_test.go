package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// A client that asked for progress is told that a call waits, and that a program
// runs. A token that is zero is valid.
func TestHTTPProgress(t *testing.T) {
	needShell(t)
	for _, modern := range []bool{false, true} {
		w := newWorld(t, hold, everywhere(20*time.Second), tellOften)
		s := newSite(t, w)
		c := s.Newer(tokenAda, nil)
		if !modern {
			c = s.Older(tokenAda, nil)
		}
		params := servertest.HoldParams()
		if modern {
			params = withMeta(params, false)
		} else {
			params["_meta"] = map[string]any{}
		}
		params["_meta"].(map[string]any)["progressToken"] = 0
		l := c.Open("POST", "/mcp", map[string]any{"id": 0, "method": "tools/call", "params": params})
		last, let := 0.0, false
		for _, want := range []string{"waiting for you", "the program has been running"} {
			for {
				m := l.Next()
				p, _ := m["params"].(map[string]any)
				n, _ := p["progress"].(float64)
				if m["method"] != "notifications/progress" || p["progressToken"] != 0.0 || n <= last {
					t.Fatalf("the stream has %v after %v, want more progress", m, last)
				}
				last = n
				if strings.Contains(p["message"].(string), want) {
					break
				}
			}
			if !let {
				w.decide(w.pending(1)[0].Code, queue.Once)
				let = true
			}
		}
		if err := os.WriteFile(filepath.Join(w.chatOf("ada").Workspaces.First().Dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for {
			m := l.Next()
			if m["method"] == nil {
				if got := result(t, m)["structuredContent"].(map[string]any); m["id"] != 0.0 || got["stdout"] != "let go\n" {
					t.Errorf("the reply = %v", m)
				}
				break
			}
		}
	}
}

// The page and the terminal answer for clients that cannot ask, and a call that
// nobody answers returns with what to do.
func TestHTTPAnsweredElsewhere(t *testing.T) {
	for _, modern := range []bool{false, true} {
		w := newWorld(t, triage, everywhere(20*time.Second))
		s := newSite(t, w)
		c := s.Newer(tokenAda, nil)
		if !modern {
			c = s.Older(tokenAda, nil)
		}
		args := map[string]any{"pack_id": "triage"}
		done := make(chan map[string]any, 1)
		go func() {
			reply, _ := c.Try(t.Context(), "tools/call", map[string]any{"name": "capability_packs_open_docs", "arguments": args})
			done <- reply
		}()
		w.decide(w.pending(1)[0].Code, queue.Once)
		if got := code(t, <-done); got != "" {
			t.Errorf("the call ends with %q, want it allowed", got)
		}
		w = newWorld(t, triage, everywhere(50*time.Millisecond))
		s = newSite(t, w)
		c = s.Newer(tokenAda, nil)
		if !modern {
			c = s.Older(tokenAda, nil)
		}
		if e := c.Fails("approval_pending", "capability_packs_open_docs", args); e["approval_code"] != w.pending(1)[0].Code {
			t.Errorf("error = %v, want the code in it", e)
		}
		// The same call of another person is a different one, and cannot use the
		// answer.
		w.decide(w.pending(1)[0].Code, queue.Once)
		other := s.Newer(tokenGrace, nil)
		if e := other.Fails("approval_pending", "capability_packs_open_docs", args); e["approval_code"] == "" {
			t.Errorf("error = %v", e)
		}
		c.OK("capability_packs_open_docs", args)
	}
}

// chatOf returns the only chat of a person.
func (w *world) chatOf(person string) *chats.Chat {
	w.t.Helper()
	all := slices.DeleteFunc(w.srv.chats.All(), func(c *chats.Chat) bool { return c.Person != person })
	if len(all) != 1 {
		w.t.Fatalf("%q has %d chats, want one", person, len(all))
	}
	return all[0]
}
