//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// A teamServer is a server over HTTP, as people use it.
type teamServer struct {
	t        *testing.T
	url, dir string
	env      []string
}

// serveTeam starts a server with a configuration.
func serveTeam(t *testing.T, content string) *teamServer {
	t.Helper()
	dir, env := home(t)
	config := filepath.Join(dir, "team.yaml")
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("packs-mcp", "serve", "--bundled", "--config", config, "--http", "127.0.0.1:0")
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stderr)
	url := ""
	for url == "" && lines.Scan() {
		url = strings.TrimSuffix(regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(lines.Text()), "/mcp")
	}
	go func() { _, _ = io.Copy(io.Discard, stderr); close(read) }()
	if url == "" {
		t.Fatal("the server does not say where it is")
	}
	return &teamServer{t: t, url: url, dir: dir, env: env}
}

// post sends a message with a token, in a session if there is one.
func (s *teamServer) post(ctx context.Context, token, session, message string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/mcp", strings.NewReader(message))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// session begins a session of a client that cannot ask its user.
func (s *teamServer) session(token string) string {
	s.t.Helper()
	res, body, err := s.post(s.t.Context(), token, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if err != nil || res.StatusCode != 200 {
		s.t.Fatalf("initialize: %v %s", err, body)
	}
	return res.Header.Get("Mcp-Session-Id")
}

// approvals runs the command with somebody's token, and returns what it prints.
func (s *teamServer) approvals(token string, args ...string) (out string, ok bool) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), "packs-mcp", append([]string{"approvals"}, append(args, "--server", s.url+"/mcp", "--token-file", file)...)...)
	cmd.Env = s.env
	b, err := cmd.CombinedOutput()
	return string(b), err == nil
}

// waits returns the code of the first call that waits for the holder of a token.
func (s *teamServer) waits(token string) string {
	s.t.Helper()
	remote, err := terminal.Remote(s.url, terminal.Fixed(token))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for calls, err := range remote.Watch(ctx) {
		if err != nil {
			s.t.Fatal(err)
		}
		if len(calls) > 0 {
			return calls[0].Code
		}
	}
	s.t.Fatal("no call waits")
	return ""
}

const (
	tokenOfAda   = "token-of-ada-0123456789"
	tokenOfGrace = "token-of-grace-0123456789"
	tokenOfEve   = "token-of-eve-0123456789"
)

const teamConfig = `
http:
  tokens:
    - {name: ada, token: ` + tokenOfAda + `}
    - {name: grace, token: ` + tokenOfGrace + `, groups: [sre]}
    - {name: eve, token: ` + tokenOfEve + `}
approvers:
  - {who: ["group:sre"], not_self: true}
`

// A token without a name sees and answers nothing over HTTP, although only this machine
// can reach the server: what a proxy here passes on comes from this machine, too.
func TestApprovalsNeedAName(t *testing.T) {
	s := serveTeam(t, "http: {token: "+tokenOfEve+"}\n")
	if out, ok := s.approvals(tokenOfEve, "list"); ok || !strings.Contains(out, "this token has no name") {
		t.Errorf("approvals list with a token without a name: %v\n%s", ok, out)
	}
}

// Somebody else answers in another terminal with their own token: only people whom
// the configuration names. Each sees what they may answer, and their own calls.
func TestApprovalsOfATeam(t *testing.T) {
	s := serveTeam(t, teamConfig)
	session := s.session(tokenOfAda)
	called := make(chan string, 1)
	go func() {
		_, body, err := s.post(t.Context(), tokenOfAda, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"capability_packs_open_docs","arguments":{"pack_id":"git-helper"}}}`)
		if err != nil {
			body = err.Error()
		}
		called <- body
	}()
	code := s.waits(tokenOfGrace)
	if got := s.waits(tokenOfAda); got != code {
		t.Errorf("the person who asks sees %q, want %q", got, code)
	}
	for name, x := range map[string]struct {
		token string
		args  []string
		want  string
	}{
		"the person who asks allows it":   {tokenOfAda, []string{"approve", code, "--yes"}, "you may not decide about it: it may be allowed by group sre"},
		"somebody else allows it":         {tokenOfEve, []string{"approve", code, "--yes"}, "no call waits under the code"},
		"somebody else denies it":         {tokenOfEve, []string{"deny", code}, "no call waits under the code"},
		"nobody":                          {"token-of-nobody-0123456789", []string{"list"}, "401"},
		"a token with a line break in it": {"token-of\n-grace", []string{"list"}, "characters that no token has"},
	} {
		if out, ok := s.approvals(x.token, x.args...); ok || !strings.Contains(out, x.want) {
			t.Errorf("%s: %v, %q, want %q", name, ok, out, x.want)
		}
	}
	if out, ok := s.approvals(tokenOfEve, "list", "--json"); !ok || strings.Contains(out, code) {
		t.Errorf("somebody else sees %v, %q", ok, out)
	}
	if out, ok := s.approvals(tokenOfGrace, "show", code); !ok || !strings.Contains(out, "may allow") || !strings.Contains(out, "ada") {
		t.Errorf("show = %v, %q", ok, out)
	}
	if out, ok := s.approvals(tokenOfGrace, "approve", code, "--yes"); !ok {
		t.Fatalf("approve = %q", out)
	}
	select {
	case body := <-called:
		if !strings.Contains(body, `"result"`) || strings.Contains(body, `"isError":true`) {
			t.Errorf("the call's answer is %s", body)
		}
	case <-time.After(time.Minute):
		t.Fatal("the call still waits")
	}
	var approver string
	b, err := os.ReadFile(filepath.Join(s.dir, "state", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var e audit.Entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Event == audit.EventDecision && e.Decision == "once" {
			approver = e.Caller + " by " + e.Approver
		}
	}
	if approver != "ada by grace" {
		t.Errorf("the log has %q", approver)
	}
}

// Requests that a browser sends on its own cannot reach the approvals, and neither
// can a token in an address, or one without a name.
func TestApprovalsOfATeamRefuse(t *testing.T) {
	const shared = "token-of-nobody-in-particular"
	s := serveTeam(t, "http: {token: "+shared+", public_url: \"https://packs.example.com\", tokens: [{name: grace, token: "+tokenOfGrace+"}]}\n")
	for name, x := range map[string]struct {
		line, token string
		header      [2]string
		want        int
	}{
		"a program":                   {"GET /approvals/control/pending", tokenOfGrace, [2]string{}, 200},
		"without a token":             {"GET /approvals/control/pending", "", [2]string{}, 401},
		"a token in the address":      {"GET /approvals/control/pending?access_token=" + tokenOfGrace, "", [2]string{}, 401},
		"a token without a name":      {"GET /approvals/control/pending", shared, [2]string{}, 403},
		"a page of our own":           {"GET /approvals/control/pending", tokenOfGrace, [2]string{"Origin", "https://packs.example.com"}, 403},
		"a foreign page":              {"POST /approvals/control/decide", tokenOfGrace, [2]string{"Origin", "https://evil.example"}, 403},
		"a browser without an origin": {"GET /approvals/control/pending", tokenOfGrace, [2]string{"Sec-Fetch-Site", "none"}, 403},
		"with a cookie":               {"GET /approvals/control/pending", tokenOfGrace, [2]string{"Cookie", "a=b"}, 403},
		"a form":                      {"POST /approvals/control/decide", tokenOfGrace, [2]string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"the desk's other requests":   {"GET /approvals/control/grants", tokenOfGrace, [2]string{}, 404},
		"a path around it":            {"GET /approvals/../approvals/control/pending", tokenOfGrace, [2]string{}, 404},
	} {
		method, path, _ := strings.Cut(x.line, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.token != "" {
			r.Header.Set("Authorization", "Bearer "+x.token)
		}
		if x.header[0] != "" {
			r.Header.Set(x.header[0], x.header[1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != x.want {
			t.Errorf("%s: %d %s, want %d", name, res.StatusCode, body, x.want)
		}
	}
}
