package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// urlVar names a server that is there already, with its token in tokenVar: then
// it is judged, and none is started.
const (
	urlVar   = "PACKS_MCP_CONFORMANCE_URL"
	tokenVar = "PACKS_MCP_CONFORMANCE_TOKEN"
)

// The official suite judges the server over HTTP. What counts are the checks
// that the list names: a scenario can pass that has checked nothing.
func TestConformance(t *testing.T) {
	judges := os.Getenv(judgesVar)
	if judges == "" {
		t.Skipf("conformance: %s is not set; make conformance installs the suite and runs this", judgesVar)
	}
	list := readConformanceList(t)
	address, token := os.Getenv(urlVar), os.Getenv(tokenVar)
	w := newWorld(t)
	if address == "" {
		address, token = w.serveHTTP()
	}
	front := conformanceFront(t, list, address, token)
	suite := filepath.Join(judges, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, set := range slices.Sorted(maps.Keys(list.Sets)) {
		t.Run(set, func(t *testing.T) {
			found := make(map[string][]conformanceCheck)
			if revision, ok := strings.CutPrefix(set, "requirements "); ok {
				found = w.suite(t, suite, front, "--requirements", revision)
			} else {
				for name := range list.Sets[set] {
					maps.Copy(found, w.suite(t, suite, front, "--scenario", name))
				}
			}
			list.judge(t, set, found)
		})
	}
}

// serveHTTP starts the program for clients over HTTP, with rules that let it be
// read by a client that cannot answer, and returns its address and token.
func (w *world) serveHTTP() (address, token string) {
	w.t.Helper()
	if out, err := w.command("serve", "--help").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--http")) {
		absent(w.t, "conformance", "this program does not serve HTTP")
	}
	// What the suite wants of resources and no pack of ours has yet.
	w.write("packs/field-notes/resources/123.txt", "This is number 123.\n")
	w.write("packs/field-notes/resources/dot.png", "\x89PNG\r\n\x1a\n\x00\xff")
	const rules = readRules + "  - allow: {kind: enable, pack: field-notes}\n"
	token = "for-the-conformance-suite-only"
	ctx, cancel := context.WithCancel(w.t.Context())
	cmd := exec.CommandContext(ctx, w.program, "serve", "--packs", w.packs, "--http", "127.0.0.1:0", "--log-format", "text")
	cmd.Dir = w.file(".")
	cmd.Env = append(w.env, "PACKS_MCP_TOKEN="+token, "PACKS_MCP_CONFIG="+w.write("rules.yaml", rules))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	log := &lockedBuffer{}
	said := make(chan string, 1)
	r, out := io.Pipe()
	cmd.Stderr = out
	go func() {
		var begun bool
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			_, _ = log.Write(buf[:n])
			if m := listening.FindStringSubmatch(log.String()); m != nil && !begun {
				begun = true
				said <- m[1]
			}
			if err != nil {
				return
			}
		}
	}()
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cancel()
		err := cmd.Wait()
		out.Close()
		if err != nil && cmd.ProcessState.ExitCode() != 0 || strings.Contains(log.String(), "level=ERROR") {
			w.t.Errorf("the server ended with %v:\n%s", err, tail(log.String()))
		}
	})
	select {
	case address = <-said:
	case <-time.After(patience):
		w.t.Fatalf("the server does not say where it listens:\n%s", log)
	}
	return address, token
}

// listening is how the program says where it serves.
var listening = regexp.MustCompile(`url="?(https?://\S+/mcp)\b`)

// conformanceFront stands before the server: the suite cannot give a token, and
// asks for tools by names that no pack can have. Everything else goes through
// as it is.
func conformanceFront(t *testing.T, list *conformanceList, address, token string) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host // which the server has to check
			r.Out.Header.Set("Authorization", "Bearer "+token)
			list.rename(r.Out)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				t.Logf("a request did not reach the server: %v", err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL + to.Path
}

// suite runs the suite and returns its checks by scenario.
func (w *world) suite(t *testing.T, file, address string, args ...string) map[string][]conformanceCheck {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, os.Getenv(nodeVar), slices.Concat([]string{file, "server", "--url", address, "--output-dir", dir}, args)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = w.env, dir, 10*time.Second
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended { // its status says what the suite thinks, not what the list says
		t.Fatalf("%q: %v\n%s", cmd.Args, err, tail(string(out)))
	}
	files, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q left no checks: %v\n%s", cmd.Args, err, tail(string(out)))
	}
	found := make(map[string][]conformanceCheck)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var checks []conformanceCheck
		if err := json.Unmarshal(raw, &checks); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		scenario := resultDir.ReplaceAllString(filepath.Base(filepath.Dir(name)), "$1")
		found[scenario] = append(found[scenario], checks...)
	}
	return found
}

// resultDir is the name of the folder of one scenario's results.
var resultDir = regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT[0-9-]+Z$`)
