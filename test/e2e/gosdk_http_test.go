package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// A transport is how a client reaches the server.
type transport string

const (
	overStdio transport = ""
	overHTTP  transport = "http" // Streamable HTTP
	overSSE   transport = "sse"  // HTTP+SSE
)

const token = "a-token-of-this-test-only"

// withToken adds the token to every request.
type withToken struct{ token string }

func (a withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return http.DefaultTransport.RoundTrip(r)
}

// serve starts the program as an HTTP server, and returns its address.
func (w *world) serve(stderr *logbuf.Buffer, token string) (base string, stop func() error) {
	w.t.Helper()
	cmd := w.command("serve", "--packs", w.packs, "--workspace", w.workspace, "--http", "127.0.0.1:0")
	if w.config != "" {
		cmd = w.command("serve", "--packs", w.packs, "--config", w.config, "--http", ":0")
	}
	if token != "" {
		cmd.Env = append(cmd.Env, "PACKS_MCP_TOKEN="+token)
	}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	stop = sync.OnceValue(func() error {
		if runtime.GOOS == "windows" {
			_ = cmd.Process.Kill()
			<-done
			return nil
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			return fmt.Errorf("the server did not end: %w", <-done)
		}
	})
	w.t.Cleanup(func() { _ = stop() })
	url := regexp.MustCompile(`url=(http://[^ ]*)/mcp`)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		if found := url.FindStringSubmatch(stderr.String()); found != nil {
			return found[1], stop
		}
		select {
		case <-tick.C:
		case err := <-done:
			done <- err
			w.t.Fatalf("the server ended with %v and logged:\n%s", err, stderr)
		case <-late:
			w.t.Fatalf("the server does not say where it is:\n%s", stderr)
		}
	}
}

// overHTTP starts a server for the client and returns how to reach it.
func (c *client) overHTTP() mcp.Transport {
	c.w.t.Helper()
	base, stop := c.w.serve(c.stderr, token)
	c.stop = stop
	return c.w.to(base, token)
}

// to returns a transport to a server.
func (w *world) to(base, token string) mcp.Transport {
	web := &http.Client{Transport: withToken{token}}
	if w.over == overSSE {
		return &mcp.SSEClientTransport{Endpoint: base + "/sse", HTTPClient: web}
	}
	return &mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: web}
}

// endServer ends the server as a person does.
func (c *client) endServer() {
	c.w.t.Helper()
	if err := c.stop(); err != nil {
		c.w.t.Errorf("after SIGTERM the server ended with %v, want status 0; it logged:\n%s", err, c.stderr)
	}
}

// Two people with tokens of their own use one server at once: the question and the log name
// the right person, and neither sees the other's tools.
func TestPeople(t *testing.T) {
	for _, version := range []string{v20251125, v20260728} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.over = overHTTP
			w.config = filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(w.config, []byte("http:\n  tokens:\n    - {name: ada, token: the-token-of-ada}\n    - {name: grace, token: the-token-of-grace}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			stderr := new(logbuf.Buffer)
			base, stop := w.serve(stderr, "")
			people := map[string]*client{}
			for _, name := range []string{"ada", "grace"} {
				c := &client{w: w, stderr: stderr, changes: make(chan struct{}, 16), answer: choose("once")}
				session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1.2"}, &mcp.ClientOptions{
					ElicitationHandler:     c.elicited,
					ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changes <- struct{}{} },
				}).Connect(t.Context(), w.to(base, "the-token-of-"+name), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatalf("Connect(%q) for %s = %v; the server logged:\n%s", version, name, err, stderr)
				}
				c.ClientSession = session
				people[name] = c
				c.list()
			}
			people["ada"].ok("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
			people["ada"].changed()
			people["ada"].question("Enable field-notes", `for: "ada", according to the client's token`)
			if got := len(people["ada"].list()); got == len(baseTools) {
				t.Errorf("ada has %d tools, want those of the pack too", got)
			}
			if got := len(people["grace"].list()); got != len(baseTools) {
				t.Errorf("grace has %d tools, want %d", got, len(baseTools))
			}
			people["grace"].unchanged()
			people["grace"].ok("capability_packs_open_docs", map[string]any{"pack_id": "plain"})
			people["grace"].question("Open plain", `for: "grace", according to the client's token`)
			for name, c := range people {
				if err := c.Close(); err != nil {
					t.Errorf("Close() for %s = %v", name, err)
				}
			}
			if err := stop(); err != nil && runtime.GOOS != "windows" {
				t.Errorf("the server ended with %v", err)
			}
			var got []string
			for _, e := range w.entries() {
				if e.Event == audit.EventDecision {
					got = append(got, e.Kind+" "+e.Caller)
				}
			}
			if want := "enable ada, open grace"; strings.Join(got, ", ") != want {
				t.Errorf("the log has %q, want %q", got, want)
			}
			if log := stderr.String(); strings.Contains(log, "the-token-of") || strings.Contains(log, "level=ERROR") {
				t.Errorf("the server logged:\n%s", log)
			}
		})
	}
}

// Without a configured token the server creates one and shows it once, and it refuses an
// address that others can reach.
func TestMadeToken(t *testing.T) {
	w := newWorld(t)
	stderr := new(logbuf.Buffer)
	base, stop := w.serve(stderr, "")
	made := regexp.MustCompile(`clients need this token until the server ends: (\S+)\n`).FindAllStringSubmatch(stderr.String(), -1)
	for late := time.After(patience); len(made) == 0; {
		select {
		case <-late:
			t.Fatalf("the server printed\n%s, want a token", stderr)
		case <-time.After(5 * time.Millisecond):
		}
		made = regexp.MustCompile(`clients need this token until the server ends: (\S+)\n`).FindAllStringSubmatch(stderr.String(), -1)
	}
	if len(made) != 1 || len(made[0][1]) < 26 || strings.Count(stderr.String(), made[0][1]) != 1 {
		t.Fatalf("the server printed\n%s, want a token of 128 bits, once", stderr)
	}
	w.over = overHTTP
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1.2"}, nil).Connect(t.Context(), w.to(base, made[0][1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1.2"}, nil).Connect(t.Context(), w.to(base, "not-the-token-of-this"), nil); err == nil {
		t.Error("a client with another token is served")
	}
	if err := stop(); err != nil && runtime.GOOS != "windows" {
		t.Errorf("the server ended with %v", err)
	}
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		out, err := w.command("serve", "--packs", w.packs, "--http", addr).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no token is configured") || !strings.Contains(string(out), "packs-mcp: hint: ") {
			t.Errorf("serve --http %s without a token: %v, printed %q, want that it is refused", addr, err, out)
		}
	}
}
