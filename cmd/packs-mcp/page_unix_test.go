//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// A publicServer is a server with a public URL, behind a proxy.
type publicServer struct {
	*teamServer
	public string
	p      *idp.Provider
}

func servePublic(t *testing.T, p *idp.Provider, more string) *publicServer {
	t.Helper()
	address, lead := public(t)
	p.Redirect(address + "/approvals/callback")
	s := serveTeam(t, "http: {public_url: \""+address+"\", oidc: {issuer: "+p.Issuer+", audience: "+idp.Audience+", client: "+idp.Audience+"}}\n"+more)
	lead(s.url)
	return &publicServer{teamServer: s, public: address, p: p}
}

// public returns the address of a proxy, and a function that says where it leads.
func public(t *testing.T) (address string, lead func(to string)) {
	t.Helper()
	var to *url.URL
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL, func(address string) {
		t.Helper()
		var err error
		if to, err = url.Parse(address); err != nil {
			t.Fatal(err)
		}
	}
}

// A window is a person's browser.
type window struct {
	t      *testing.T
	s      *publicServer
	client *http.Client
	key    string // of the page that it shows
}

func (s *publicServer) window() *window {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &window{t: s.t, s: s, client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// open opens an address, as a person does.
func (b *window) open(at string) (res *http.Response, body string) {
	b.t.Helper()
	return b.ask("GET", at, "", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "none")
}

// ask sends a request with these headers.
func (b *window) ask(method, at, body string, headers ...string) (*http.Response, string) {
	b.t.Helper()
	if strings.HasPrefix(at, "/") {
		at = b.s.public + at
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res, string(text)
}

// script sends a request as the page's own script does.
func (b *window) script(method, path, body string, headers ...string) (*http.Response, string) {
	b.t.Helper()
	own := []string{"X-Packs-Key", b.key, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}
	if method == "POST" {
		own = append(own, "Origin", b.s.public, "Content-Type", "application/json")
	}
	return b.ask(method, path, body, append(own, headers...)...)
}

// leads returns where the page redirects without a session: to the provider.
func (b *window) leads() string {
	b.t.Helper()
	res, body := b.open("/approvals/")
	at := res.Header.Get("Location")
	if res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, b.s.p.Issuer) {
		b.t.Fatalf("without a session the page is %s to %q: %s", res.Status, at, body)
	}
	return at
}

// login logs a person in, and shows the page.
func (b *window) login(person string) {
	b.t.Helper()
	res, body := b.open(b.s.p.Login(person, b.leads()).String())
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/approvals/" {
		b.t.Fatalf("the callback is %s to %q: %s", res.Status, res.Header.Get("Location"), body)
	}
	b.show()
}

func (b *window) show() {
	b.t.Helper()
	res, body := b.open("/approvals/")
	key := regexp.MustCompile(`<meta name="packs-key" content="([^"]{40,})">`).FindStringSubmatch(body)
	if res.StatusCode != 200 || key == nil || !strings.Contains(res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || res.Header.Get("Cache-Control") != "no-store" {
		b.t.Fatalf("the page is %s: %s", res.Status, body)
	}
	b.key = key[1]
}

// session returns the cookie with the session.
func (b *window) session() *http.Cookie {
	b.t.Helper()
	u, err := url.Parse(b.s.public)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(u) {
		if strings.HasPrefix(c.Name, "packs-session-") {
			return c
		}
	}
	return nil
}

// events returns the stream of the page's events; it ends with the test.
func (b *window) events() *bufio.Scanner {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", b.s.public+"/approvals/events", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("X-Packs-Key", b.key)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		b.t.Fatalf("the events are %s", res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return lines
}

// waitFor returns the first line of a stream that matches.
func waitFor(t *testing.T, lines *bufio.Scanner, pattern string) []string {
	t.Helper()
	for lines.Scan() {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); found != nil {
			return found
		}
	}
	t.Fatalf("the stream ended without %s", pattern)
	return nil
}

// A person logs in with a browser, sees the questions they may answer, and answers; the
// log has their name. Logging out ends the session everywhere.
func TestPageOfATeam(t *testing.T) {
	s := servePublic(t, idp.Start(t), "approvers: [{who: [\"group:sre\"], not_self: true}]\n")
	token := s.p.Token(idp.Grace, idp.Audience)
	session := s.session(token)
	called := make(chan string, 1)
	go func() {
		_, body, err := s.post(t.Context(), token, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"capability_packs_open_docs","arguments":{"pack_id":"git-helper"}}}`)
		if err != nil {
			body = err.Error()
		}
		called <- body
	}()
	ada, grace := s.window(), s.window()
	ada.login(idp.Ada)
	grace.login(idp.Grace)
	lines := ada.events()
	waitFor(t, lines, `^data: \{"person":"ada@example\.com [0-9a-f]{24}"`)
	code := waitFor(t, lines, `"code":"([^"]+)"`)[1]
	if got := waitFor(t, grace.events(), `"code":"([^"]+)"`)[1]; got != code {
		t.Errorf("the person who asks sees %q", got)
	}
	decision := `{"code":"` + code + `","decision":"once","values":{},"client_gone":false}`
	if res, body := grace.script("POST", "/approvals/decide", decision); res.StatusCode != 403 || !strings.Contains(body, "you may not decide about it") {
		t.Errorf("the person who asks allows it: %s %s", res.Status, body)
	}
	// Only the page's own requests can decide anything.
	stolen := ada.session()
	for name, x := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"no second secret":             {"POST", "/approvals/decide", []string{"X-Packs-Key", ""}, 403},
		"another session's secret":     {"POST", "/approvals/decide", []string{"X-Packs-Key", grace.key}, 403},
		"a foreign page":               {"POST", "/approvals/decide", []string{"Origin", "https://evil.example"}, 403},
		"a page of this machine":       {"POST", "/approvals/decide", []string{"Origin", "http://localhost:3000"}, 403},
		"no origin":                    {"POST", "/approvals/decide", []string{"Origin", ""}, 403},
		"another site":                 {"POST", "/approvals/decide", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another name of the site":     {"POST", "/approvals/decide", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"a form":                       {"POST", "/approvals/decide", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"the events of another page":   {"GET", "/approvals/events", []string{"X-Packs-Key", ""}, 403},
		"the page, by a script":        {"GET", "/approvals/", nil, 403},
		"a service worker":             {"GET", "/approvals/page.js", []string{"Service-Worker", "script"}, 403},
		"what the page has not":        {"GET", "/approvals/page.go", nil, 404},
		"what only the operator has":   {"POST", "/approvals/attach", nil, 404},
		"changes of the operator's":    {"POST", "/approvals/changes/view", nil, 404},
		"a program's request":          {"GET", "/approvals/control/pending", []string{"Sec-Fetch-Site", ""}, 401},
		"the secret as a token":        {"GET", "/approvals/control/pending", []string{"Authorization", "Bearer " + ada.key}, 401},
		"the cookie as a token":        {"GET", "/approvals/control/pending", []string{"Authorization", "Bearer " + stolen.Value}, 401},
		"a path around it":             {"GET", "/approvals/%65vents", nil, 404},
		"logging somebody out":         {"POST", "/approvals/logout", []string{"X-Packs-Key", ""}, 403},
		"logging out by a link":        {"GET", "/approvals/logout", []string{"X-Packs-Key", ""}, 403},
		"two origins, as one":          {"POST", "/approvals/decide", []string{"Origin", s.public + ", https://evil.example"}, 403},
		"an origin with another port":  {"POST", "/approvals/decide", []string{"Origin", "http://127.0.0.1:1"}, 403},
		"an origin that is not a page": {"POST", "/approvals/decide", []string{"Origin", "null"}, 403},
	} {
		if res, body := ada.script(x.method, x.path, decision, x.headers...); res.StatusCode != x.want {
			t.Errorf("%s: %s %s, want %d", name, res.Status, body, x.want)
		}
	}
	if res, body := s.window().script("POST", "/approvals/decide", decision); res.StatusCode != 401 {
		t.Errorf("without a session: %s %s", res.Status, body)
	}
	if res, body := ada.script("POST", "/approvals/decide", decision); res.StatusCode != 200 || !strings.Contains(body, `"title":`) {
		t.Fatalf("the group allows it: %s %s", res.Status, body)
	}
	select {
	case body := <-called:
		if !strings.Contains(body, `"result"`) || strings.Contains(body, `"isError":true`) {
			t.Errorf("the call's answer is %s", body)
		}
	case <-time.After(time.Minute):
		t.Fatal("the call still waits")
	}
	if got := decidedBy(t, filepath.Join(s.dir, "state", "audit.jsonl")); !regexp.MustCompile(`^grace@example\.com \S+ by ada@example\.com \S+ on page$`).MatchString(got) {
		t.Errorf("the log has %q", got)
	}
	// Logging out ends the session and its streams, even for a copy of the cookie.
	if res, body := ada.script("POST", "/approvals/logout", "{}"); res.StatusCode != 200 {
		t.Fatalf("logging out: %s %s", res.Status, body)
	}
	for lines.Scan() { // the stream ends
	}
	if ada.session() != nil {
		t.Error("after logging out the browser has the cookie")
	}
	if res, _ := s.window().script("GET", "/approvals/events", "", "Cookie", stolen.Name+"="+stolen.Value, "X-Packs-Key", ada.key); res.StatusCode != 401 {
		t.Errorf("a stolen cookie after logging out: %s", res.Status)
	}
	if res, body := ada.open("/approvals/?out"); res.StatusCode != 200 || !strings.Contains(body, "You are logged out") {
		t.Errorf("then the page is %s: %s", res.Status, body)
	}
	ada.leads()
}

// decidedBy returns who asked, who allowed it, and where.
func decidedBy(t *testing.T, path string) (found string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var e audit.Entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Event == audit.EventDecision && e.Decision == "once" {
			found = e.Caller + " by " + e.Approver + " on " + e.Channel
		}
	}
	return found
}

// Nobody can log a person's browser in as someone else. A response of the provider cannot
// be used in another browser, twice, or for another login.
func TestPageLoginAttacks(t *testing.T) {
	s := servePublic(t, idp.Start(t), "")
	ada, mallory := s.window(), s.window()
	// A planted session does not become the session that logging in creates.
	u, err := url.Parse(s.public)
	if err != nil {
		t.Fatal(err)
	}
	planted := "planted-planted-planted-planted-planted-planted"
	ada.client.Jar.SetCookies(u, []*http.Cookie{{Name: "packs-session-" + u.Port(), Value: planted, Path: "/"}})
	with := func(at *url.URL, changes ...string) string {
		q := at.Query()
		for i := 0; i < len(changes); i += 2 {
			q.Set(changes[i], changes[i+1])
		}
		return "/approvals/callback?" + q.Encode()
	}
	// Each row begins a login of its own in both browsers, so it is refused for what it says.
	for name, x := range map[string]struct {
		at   func(mine, theirs *url.URL) string
		want int
	}{
		"another person's answer":         {func(_, theirs *url.URL) string { return with(theirs) }, 400},
		"another person's code, my state": {func(mine, theirs *url.URL) string { return with(theirs, "state", mine.Query().Get("state")) }, 403},
		"my code, another person's state": {func(mine, theirs *url.URL) string { return with(mine, "state", theirs.Query().Get("state")) }, 400},
		"another provider's answer":       {func(mine, _ *url.URL) string { return with(mine, "iss", "https://login.evil.example") }, 400},
		"no state":                        {func(mine, _ *url.URL) string { return "/approvals/callback?code=" + mine.Query().Get("code") }, 400},
		"nothing":                         {func(_, _ *url.URL) string { return "/approvals/callback" }, 400},
		"two codes":                       {func(mine, _ *url.URL) string { return with(mine) + "&code=x" }, 400},
	} {
		at := x.at(s.p.Login(idp.Ada, ada.leads()), s.p.Login(idp.Grace, mallory.leads()))
		if res, body := ada.open(at); res.StatusCode != x.want || res.Header.Get("Location") != "" || ada.session().Value != planted {
			t.Errorf("%s: %s to %q, want %d: %s", name, res.Status, res.Header.Get("Location"), x.want, body)
		}
	}
	// The answer to a login that was begun again is too late.
	early := s.p.Login(idp.Ada, ada.leads())
	ada.leads()
	if res, body := ada.open(with(early)); res.StatusCode != 400 {
		t.Errorf("the answer to an earlier login: %s: %s", res.Status, body)
	}
	// Requests that a foreign page can make a browser send.
	good := s.p.Login(idp.Ada, ada.leads()).String()
	if res, _ := ada.ask("GET", good, "", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image", "Sec-Fetch-Site", "cross-site"); res.StatusCode != 403 {
		t.Errorf("the answer as a picture of a page: %s", res.Status)
	}
	if res, _ := ada.ask("GET", "/approvals/", "", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe", "Sec-Fetch-Site", "cross-site"); res.StatusCode != 403 {
		t.Errorf("the page in a frame of a page: %s", res.Status)
	}
	// The true response is accepted once.
	res, body := ada.ask("GET", good, "", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "cross-site")
	if res.StatusCode != 303 || ada.session() == nil || ada.session().Value == planted {
		t.Fatalf("the good answer: %s: %s", res.Status, body)
	}
	for _, c := range res.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("the cookie is %s", c.Raw)
		}
	}
	session := ada.session().Value
	if res, _ := ada.open(good); res.StatusCode != 400 || ada.session().Value != session {
		t.Errorf("the same answer again: %s", res.Status)
	}
	// No URL redirects elsewhere.
	for _, at := range []string{"/approvals", "/approvals/?next=https://evil.example", "/approvals//evil.example", "/approvals/callback?next=//evil.example", `/approvals/\evil.example`} {
		for _, b := range []*window{ada, s.window()} {
			res, _ := b.open(at)
			if to := res.Header.Get("Location"); to != "" && to != "/approvals/" && !strings.HasPrefix(to, s.p.Issuer) {
				t.Errorf("GET %s leads to %q", at, to)
			}
		}
	}
	// Another name for the host is refused.
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/approvals/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != 403 {
		t.Errorf("DNS rebinding: %v, %v", res, err)
	}
}
