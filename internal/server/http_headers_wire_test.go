package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

// Conversations over HTTP with status and headers, in testdata/wire/http. Each
// section names its exchange: "client open" is a request, and "server open" is what
// came for it since, beginning with status and headers, and with "the end" if nothing
// more comes. "leave open" closes it. $SESSION, $STATE and $ASK stand for what the
// server sent last; TOKEN for the token.
func TestWireHeaders(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "wire", "http", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			w := worldOf(t, file)
			h := &httpTalk{
				t: t, site: newSite(t, w, func(o *httpd.Options) { o.Credentials = []httpd.Credential{{Token: tokenAda}} }),
				under: make(map[string]*httpExchange), known: map[string]string{"TOKEN": tokenAda},
			}
			talk := readTalk(t, file)
			for i, section := range talk.Files {
				if isPack(section) {
					continue
				}
				what, name, _ := strings.Cut(section.Name, " ")
				text := string(section.Data)
				switch what {
				case "client":
					h.ask(name, text)
				case "leave":
					h.under[name].leave()
				case "log":
					w.logged(strings.TrimSpace(text))
				case "made":
					w.made(strings.TrimSpace(text))
				case "server":
					got := h.answer(name, text)
					if *update {
						talk.Files[i].Data = []byte(got)
					} else if diff := cmp.Diff(text, got); diff != "" {
						t.Fatalf("section %d, %s (-want +got; go test -update writes it):\n%s", i+1, section.Name, diff)
					}
				default:
					t.Fatalf("section %d: %q is none", i+1, section.Name)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(talk), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for name, x := range h.under {
				x.leave()
				for line := range x.lines {
					t.Errorf("for %s, the server also said %s", name, line)
				}
			}
		})
	}
}

// A httpTalk is a conversation over HTTP.
type httpTalk struct {
	t     *testing.T
	site  *servertest.Site
	under map[string]*httpExchange // :: name → exchange
	known map[string]string        // :: placeholder in the conversation → its value
}

// An httpExchange is one request and what comes back for it.
type httpExchange struct {
	leave context.CancelFunc
	head  chan string // status and headers
	begun bool        // head was read
	lines chan string // messages; closed at the end
}

// shown are the headers that conversations show.
var shown = [...]string{"Allow", "Cache-Control", "Content-Type", "Mcp-Session-Id", "WWW-Authenticate", "X-Accel-Buffering"}

func (h *httpTalk) ask(name, text string) {
	h.t.Helper()
	for word, value := range h.known {
		text = strings.ReplaceAll(text, word, value)
	}
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	ctx, leave := context.WithCancel(context.Background())
	h.t.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, method, h.site.Server.URL+path, strings.NewReader(strings.TrimSpace(body)))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range lines[1:] {
		key, value, _ := strings.Cut(line, ": ")
		r.Header.Set(key, value)
	}
	x := &httpExchange{leave: leave, head: make(chan string, 1), lines: make(chan string, 64)}
	if h.under[name] != nil {
		h.t.Fatalf("two exchanges are called %s", name)
	}
	h.under[name] = x
	go func() {
		defer close(x.lines)
		resp, err := (&http.Client{Transport: h.site.Transport}).Do(r)
		if err != nil {
			if ctx.Err() == nil {
				h.t.Errorf("%s: %v", name, err)
			}
			return
		}
		defer resp.Body.Close()
		var b strings.Builder
		fmt.Fprintln(&b, resp.StatusCode)
		for _, key := range shown {
			if v := resp.Header.Get(key); v != "" {
				fmt.Fprintf(&b, "%s: %s\n", key, v)
			}
		}
		x.head <- b.String()
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			_ = servertest.Events(resp.Body, func(event, data string) bool {
				if event != "message" {
					data = event + ": " + data
				}
				x.lines <- data
				return true
			})
			return
		}
		if body, err := io.ReadAll(resp.Body); err == nil && len(body) > 0 {
			x.lines <- string(bytes.TrimSpace(body))
		}
	}()
}

// answer returns what came for an exchange: as many lines as are wanted.
func (h *httpTalk) answer(name, want string) string {
	h.t.Helper()
	x := h.under[name]
	late := time.After(20 * time.Second)
	var got strings.Builder
	if !x.begun {
		x.begun = true
		var ok bool
		var body string
		if _, body, ok = strings.Cut(want, "\n\n"); !ok {
			body = ""
		}
		want = body
		select {
		case head := <-x.head:
			got.WriteString(h.plain(head))
		case <-late:
			h.t.Fatalf("%s: the server does not answer", name)
		}
		if want != "" {
			got.WriteString("\n")
		}
	}
	for range strings.Count(want, "\n") {
		select {
		case line, ok := <-x.lines:
			if !ok {
				line = "the end"
			}
			got.WriteString(h.plain(line))
			got.WriteString("\n")
		case <-late:
			h.t.Fatalf("%s: the server does not answer; so far\n%s", name, got.String())
		}
	}
	return got.String()
}

// plain remembers the values in a text that later requests need, and replaces them
// with their names.
func (h *httpTalk) plain(text string) string {
	h.t.Helper()
	for _, before := range []string{"Mcp-Session-Id: ", "sessionId="} {
		if _, id, ok := strings.Cut(text, before); ok {
			h.known["$SESSION"], _, _ = strings.Cut(id, "\n")
		}
	}
	var m map[string]any
	if json.Unmarshal([]byte(text), &m) == nil {
		if id, err := json.Marshal(m["id"]); err == nil && m["method"] == "elicitation/create" {
			h.known["$ASK"] = string(id)
		}
		if r, ok := m["result"].(map[string]any); ok && r["requestState"] != nil {
			h.known["$STATE"], _ = r["requestState"].(string)
		}
		text = plainMessage(h.t, m)
	}
	if id := h.known["$SESSION"]; id != "" {
		text = strings.ReplaceAll(text, id, "$SESSION")
	}
	return text
}
