//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/idp"
)

// serveWithLogin starts a server whose users log in at a provider.
func serveWithLogin(t *testing.T, p *idp.Provider, more string) *teamServer {
	t.Helper()
	p.Redirect("http://127.0.0.1/callback")
	return serveTeam(t, "http: {oidc: {issuer: "+p.Issuer+", audience: "+idp.Audience+", client: "+idp.Audience+"}}\n"+more)
}

// browser returns a program for BROWSER that records the file it is given.
func browser(t *testing.T) (program string, url func() string) {
	t.Helper()
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	program = filepath.Join(dir, "browser")
	script := fmt.Sprintf("#!/bin/sh\nf=${1#file://}\ncp \"$f\" %s.new && mv %s.new %s\n", seen, seen, seen)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, func() string {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if b, err := os.ReadFile(seen); err == nil {
				return html.UnescapeString(regexp.MustCompile(`<a href="([^"]*)"`).FindStringSubmatch(string(b))[1])
			}
		}
		t.Fatal("no browser was opened")
		return ""
	}
}

// A loggingIn is a running login and its output.
type loggingIn struct {
	t   *testing.T
	cmd *exec.Cmd
	err *bufio.Reader
	out *strings.Builder
}

func (s *teamServer) login(env []string, args ...string) *loggingIn {
	s.t.Helper()
	l := &loggingIn{t: s.t, cmd: exec.CommandContext(s.t.Context(), "packs-mcp", append([]string{"login", s.url}, args...)...), out: new(strings.Builder)}
	l.cmd.Env, l.cmd.Stdout = append(s.env, env...), l.out
	stderr, err := l.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	l.err = bufio.NewReader(stderr)
	if err := l.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return l
}

// end waits until the login ends, and returns its output.
func (l *loggingIn) end() (said string, ok bool) {
	rest, _ := io.ReadAll(l.err)
	err := l.cmd.Wait()
	return l.out.String() + string(rest), err == nil
}

// run runs the program as the user of the server's home.
func (s *teamServer) run(args ...string) (out string, ok bool) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "packs-mcp", args...)
	cmd.Env = s.env
	b, err := cmd.CombinedOutput()
	return string(b), err == nil
}

// kept returns the file with the logins, and checks that no other user can read it.
func (s *teamServer) kept() (path, text string) {
	s.t.Helper()
	path = filepath.Join(s.dir, "state", "state", "logins.json")
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(s.dir, "state", "logins.json")
	}
	fi, err := os.Stat(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if fi.Mode().Perm() != 0o600 {
		s.t.Errorf("the file with the logins has the mode %04o", fi.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return path, string(b)
}

// rewrite changes the stored logins.
func (s *teamServer) rewrite(change func(login map[string]any)) {
	s.t.Helper()
	path, text := s.kept()
	var all struct {
		Version int              `json:"version"`
		Logins  []map[string]any `json:"logins"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		s.t.Fatal(err)
	}
	for _, one := range all.Logins {
		change(one)
	}
	b, err := json.Marshal(all)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// A person logs in with a browser, and can then see and answer their calls in the terminal
// until they log out. The login is renewed. Once it has ended, the program says so, and
// what to do.
func TestLoginWithBrowser(t *testing.T) {
	p := idp.Start(t)
	s := serveWithLogin(t, p, "")
	if out, ok := s.run("approvals", "list", "--server", s.url); ok || !strings.Contains(out, "you are not logged in") || !strings.Contains(out, "packs-mcp login "+s.url) {
		t.Errorf("before: %v, %s", ok, out)
	}
	program, opened := browser(t)
	l := s.login([]string{"BROWSER=" + program})
	at := opened()
	back, err := url.Parse(at)
	if err != nil || !strings.HasPrefix(at, p.Issuer) || back.Query().Get("resource") != s.url+"/mcp" {
		t.Fatalf("the browser is sent to %s", at)
	}
	to, err := url.Parse(back.Query().Get("redirect_uri"))
	if err != nil {
		t.Fatal(err)
	}
	state := back.Query().Get("state")
	// What others can send to the server that waits for the browser.
	for name, x := range map[string]struct {
		method, query, host string
		header              [2]string
		want                int
	}{
		"DNS rebinding":             {"GET", "?state=" + state + "&code=x", "evil.example:80", [2]string{}, 404},
		"a name of this machine":    {"GET", "?state=" + state + "&code=x", "localhost:" + to.Port(), [2]string{}, 404},
		"a script of a page":        {"GET", "?state=" + state + "&code=x", "", [2]string{"Sec-Fetch-Mode", "no-cors"}, 404},
		"a page's request":          {"GET", "?state=" + state + "&code=x", "", [2]string{"Origin", "https://evil.example"}, 404},
		"a form":                    {"POST", "?state=" + state + "&code=x", "", [2]string{}, 404},
		"no answer":                 {"GET", "", "", [2]string{}, 400},
		"an answer of another":      {"GET", "?state=x&code=x", "", [2]string{}, 400},
		"a refusal of another":      {"GET", "?state=x&error=access_denied", "", [2]string{}, 400},
		"another provider's answer": {"GET", "?state=" + state + "&code=x&iss=https://evil.example", "", [2]string{}, 400},
		"two states":                {"GET", "?state=" + state + "&state=" + state + "&code=x", "", [2]string{}, 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), x.method, "http://"+to.Host+to.Path+x.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = x.host
		if x.header[0] != "" {
			r.Header.Set(x.header[0], x.header[1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != x.want {
			t.Errorf("%s: %s, want %d", name, res.Status, x.want)
		}
	}
	res, err := http.Get(p.Login(idp.Ada, at).String())
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != 200 || !strings.Contains(string(body), "You are logged in.") || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("the browser sees %s: %s", res.Status, body)
	}
	said, ok := l.end()
	if !ok || !strings.Contains(said, "You are logged in.") || strings.Contains(said, state) {
		t.Fatalf("login: %v, %s", ok, said)
	}
	_, text := s.kept()
	if out, ok := s.run("approvals", "list", "--server", s.url+"/mcp", "--json"); !ok || !strings.Contains(out, `"pending": []`) {
		t.Errorf("approvals list: %v, %s", ok, out)
	}
	// The token expires and is renewed.
	s.rewrite(func(login map[string]any) { login["until"] = time.Now().Add(-time.Hour); login["access"] = "ended" })
	if out, ok := s.run("approvals", "list", "--server", s.url); !ok {
		t.Errorf("after its token ended: %s", out)
	}
	if _, now := s.kept(); now == text || strings.Contains(now, `"ended"`) {
		t.Error("the login was not renewed")
	}
	// After a logout, a copy of the file cannot renew the login either.
	path, copied := s.kept()
	if out, ok := s.run("logout", s.url+"/mcp"); !ok || !strings.Contains(out, "You are logged out of "+s.url) || strings.Contains(out, "warning") {
		t.Errorf("logout: %v, %s", ok, out)
	}
	if _, text := s.kept(); strings.Contains(text, "access") {
		t.Error("after logging out the file has a token")
	}
	if err := os.WriteFile(path, []byte(copied), 0o600); err != nil {
		t.Fatal(err)
	}
	s.rewrite(func(login map[string]any) { login["until"] = time.Now().Add(-time.Hour) })
	if out, ok := s.run("approvals", "list", "--server", s.url); ok || !strings.Contains(out, "your login ended: the identity provider refuses") || !strings.Contains(out, "hint: log in: packs-mcp login "+s.url) {
		t.Errorf("when the provider renews it no more: %v, %s", ok, out)
	}
	if out, ok := s.run("approvals", "list", "--server", s.url); ok || !strings.Contains(out, "you are not logged in to it") {
		t.Errorf("then: %v, %s", ok, out)
	}
}

// A person can log in on another device.
func TestLoginOnDevice(t *testing.T) {
	p := idp.Start(t)
	s := serveWithLogin(t, p, "")
	l := s.login([]string{"BROWSER=", "DISPLAY=", "WAYLAND_DISPLAY="}, "--device")
	var at, code string
	for at == "" || code == "" {
		line, err := l.err.ReadString('\n')
		if err != nil {
			t.Fatalf("login says nothing more: %v", err)
		}
		if _, after, ok := strings.Cut(line, "Open this page on any device:  "); ok {
			at = strings.TrimSpace(after)
		}
		if _, after, ok := strings.Cut(line, "and type this code there:      "); ok {
			code = strings.TrimSpace(after)
		}
	}
	p.Device(idp.Grace, at, code, true)
	if said, ok := l.end(); !ok || !strings.Contains(said, "You are logged in.") {
		t.Fatalf("login: %v, %s", ok, said)
	}
	if out, ok := s.run("approvals", "list", "--server", s.url); !ok {
		t.Errorf("approvals list: %s", out)
	}
	if out, ok := s.run("logout", "--all"); !ok || !strings.Contains(out, "You are logged out of "+s.url) {
		t.Errorf("logout: %v, %s", ok, out)
	}
	if out, ok := s.run("logout", s.url); !ok || !strings.Contains(out, "You were not logged in.") {
		t.Errorf("logout again: %v, %s", ok, out)
	}
	if out, ok := s.run("logout"); ok || !strings.Contains(out, "takes the URL of a server, or --all") {
		t.Errorf("logout of nothing: %v, %s", ok, out)
	}
}

// Nothing is stored if the server refuses the login, or if it is unclear whose server it
// is.
func TestLoginRefused(t *testing.T) {
	p := idp.Start(t)
	p.Redirect("http://127.0.0.1/callback")
	out := func(s *teamServer, args ...string) string {
		t.Helper()
		said, ok := s.run(append([]string{"login", s.url}, args...)...)
		if ok {
			t.Errorf("login %q = %s, want it refused", args, said)
		}
		return said
	}
	for name, x := range map[string]struct{ config, want string }{
		"people have tokens":      {"http: {tokens: [{name: grace, token: " + tokenOfGrace + "}]}\n", "its people have tokens"},
		"no client":               {"http: {oidc: {issuer: " + p.Issuer + ", audience: " + idp.Audience + "}}\n", "http.oidc.client"},
		"a server under its name": {"http: {public_url: \"https://packs.example.com\", oidc: {issuer: " + p.Issuer + ", client: " + idp.Audience + "}}\n", "described elsewhere"},
		"no provider there":       {"http: {oidc: {issuer: \"http://127.0.0.1:1\", audience: x, client: x}}\n", "asking the identity provider"},
	} {
		if said := out(serveTeam(t, x.config)); !strings.Contains(said, x.want) {
			t.Errorf("%s: %s, want %q", name, said, x.want)
		}
	}
	s := serveTeam(t, "http: {oidc: {issuer: "+p.Issuer+", audience: "+idp.Audience+", client: "+idp.Audience+", allow: [sre]}}\n")
	program, opened := browser(t)
	l := s.login([]string{"BROWSER=" + program})
	res, err := http.Get(p.Login(idp.Grace, opened()).String())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if said, ok := l.end(); ok || !strings.Contains(said, "refuses you: the server answered with the status 403: you are in none of the groups") {
		t.Errorf("a person in no group: %v, %s", ok, said)
	}
	if said, _ := s.run("approvals", "list", "--server", s.url); !strings.Contains(said, "you are not logged in") {
		t.Errorf("a login that was refused is kept: %s", said)
	}
}
