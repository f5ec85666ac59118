package signin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// A site is a desk on a server, at a time that the test sets.
type site struct {
	t    *testing.T
	p    *idp.Provider
	desk *Desk
	url  string

	mu  sync.Mutex
	now time.Time
}

func (s *site) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// tell answers a request of a session with the groups of its person; without a session, it
// leads to the provider.
func tell(d *Desk, w http.ResponseWriter, r *http.Request) {
	one, done, err := d.Session(r)
	if one == nil {
		d.Enter(w, r, err)
		return
	}
	defer done()
	_, _ = io.WriteString(w, "in "+strings.Join(one.Person().Groups, ","))
}

// newSite starts a desk. Its answer to a session is the groups of its person.
func newSite(t *testing.T, scopes ...string) *site {
	t.Helper()
	s := &site{t: t, p: idp.Start(t), now: time.Now()}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tell(s.desk, w, r)
	}))
	t.Cleanup(web.Close)
	s.url = web.URL
	s.p.Redirect(s.url + Prefix + "/callback")
	v, err := oidc.New(oidc.Options{Issuer: s.p.Issuer, Audience: idp.Audience, Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	s.desk, err = New(Options{PublicURL: s.url, Provider: login.Options{Issuer: s.p.Issuer, Client: idp.Audience, Scopes: scopes}, Verify: v.Verify, Logger: slog.New(slog.DiscardHandler), Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// get returns what the page is: "in" and groups, or where it leads.
func (s *site) get(b *http.Client, at string) string {
	s.t.Helper()
	res, err := b.Get(at)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if to := res.Header.Get("Location"); to != "" {
		return to
	}
	return string(body)
}

func (s *site) login(person string) *http.Client {
	s.t.Helper()
	b := s.browser()
	if to := s.get(b, s.p.Login(person, s.get(b, s.url+Prefix+"/")).String()); to != Prefix+"/" {
		s.t.Fatalf("the callback leads to %q", to)
	}
	return b
}

func (s *site) in(b *http.Client) bool {
	s.t.Helper()
	return strings.HasPrefix(s.get(b, s.url+Prefix+"/"), "in ")
}

// A session ends when it was not used for a while, and after half a day in any case.
func TestLife(t *testing.T) {
	s := newSite(t)
	b := s.login(idp.Ada)
	s.pass(idle - time.Minute)
	s.fresh()
	if !s.in(b) {
		t.Error("a session that was used 29 minutes ago is over")
	}
	s.pass(idle)
	s.fresh()
	if s.in(b) {
		t.Error("a session that was not used for half an hour is good")
	}
	s = newSite(t)
	b = s.login(idp.Ada)
	begun := s.clock()
	for s.in(b) {
		s.pass(idle - time.Minute)
		s.fresh()
		if s.clock().Sub(begun) > longest+idle {
			t.Fatal("a session that is used all the time does not end")
		}
	}
	if took := s.clock().Sub(begun); took < longest {
		t.Errorf("a session that is used ended after %v", took)
	}
}

// fresh has every session's token end in some minutes, as if it had just been renewed: the
// provider's own clock stands still.
func (s *site) fresh() {
	s.desk.sessions.mu.Lock()
	defer s.desk.sessions.mu.Unlock()
	for _, one := range s.desk.sessions.all {
		one.mu.Lock()
		one.who.Until = s.clock().Add(5 * time.Minute)
		one.mu.Unlock()
	}
}

// A person who leaves a group is seen when their token is renewed, and one whose account
// is closed when the provider refuses that.
func TestRenewal(t *testing.T) {
	s := newSite(t)
	b := s.login(idp.Ada)
	if got := s.get(b, s.url+Prefix+"/"); got != "in staff,sre" {
		t.Fatalf("the page is %q", got)
	}
	end := func() {
		s.desk.sessions.mu.Lock()
		defer s.desk.sessions.mu.Unlock()
		for _, one := range s.desk.sessions.all {
			one.mu.Lock()
			one.who.Until = s.clock()
			one.mu.Unlock()
		}
	}
	s.p.Leaves(idp.Ada)
	if got := s.get(b, s.url+Prefix+"/"); got != "in staff,sre" {
		t.Errorf("before the token ends the page is %q", got)
	}
	end()
	if got := s.get(b, s.url+Prefix+"/"); got != "in " {
		t.Errorf("with the next token the page is %q", got)
	}
	// While the provider is away, a session waits for it.
	end()
	s.p.Leave(true)
	if s.in(b) {
		t.Error("a session whose token ended is good while the provider is away")
	}
	s.p.Leave(false)
	if !s.in(b) {
		t.Error("it is over when the provider is back")
	}
	end()
	for _, one := range s.desk.sessions.all {
		one.tokens.Refresh = "revoked"
	}
	if s.in(b) || len(s.desk.sessions.all) != 0 {
		t.Error("a session that the provider renews no more is good")
	}
}

// A token of another person's ends the session that it was to renew.
func TestRenewedAsAnother(t *testing.T) {
	s := newSite(t)
	b := s.login(idp.Ada)
	real := s.desk.o.Verify
	s.desk.o.Verify = func(ctx context.Context, token string) (*oidc.Identity, error) {
		id, err := real(ctx, token)
		if err == nil {
			id.Key = "another"
		}
		return id, err
	}
	for _, one := range s.desk.sessions.all {
		one.who.Until = s.clock()
	}
	if s.in(b) {
		t.Error("a session went to another person")
	}
}

// A person has a few sessions; the one that was not used for longest goes first, and
// nobody else's.
func TestSessionsOfOnePerson(t *testing.T) {
	s := newSite(t)
	grace := s.login(idp.Grace)
	var all []*http.Client
	for range maxEach + 1 {
		s.pass(time.Second)
		all = append(all, s.login(idp.Ada))
	}
	for i, b := range all {
		if got := s.in(b); got != (i > 0) {
			t.Errorf("session %d of %d is good: %v", i, len(all), got)
		}
	}
	if !s.in(grace) {
		t.Error("somebody else's session is over")
	}
}

// A login that took too long, or that another server began, is good for nothing.
func TestLateLogin(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	answer := s.p.Login(idp.Ada, s.get(b, s.url+Prefix+"/")).String()
	s.pass(attemptTime)
	if got := s.get(b, answer); !strings.Contains(got, "This login took too long") {
		t.Errorf("late: %s", got)
	}
	answer = s.p.Login(idp.Ada, s.get(b, s.url+Prefix+"/")).String()
	box, err := login.NewBox()
	if err != nil {
		t.Fatal(err)
	}
	s.desk.box = box
	if got := s.get(b, answer); !strings.Contains(got, "or was not begun here") {
		t.Errorf("of another server: %s", got)
	}
}

// Cookies of a public server go over TLS only, and are this host's alone.
func TestCookies(t *testing.T) {
	for at, want := range map[string]string{
		"https://packs.example.com":      "__Host-packs-session",
		"https://example.com:8443/packs": "__Host-packs-session",
		"http://127.0.0.1:8080":          "packs-session-8080",
	} {
		d, err := New(Options{PublicURL: at})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		d.setCookie(w, d.session, "x", longest)
		c := w.Result().Cookies()[0]
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != want || c.Secure != (u.Scheme == "https") || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Domain != "" || c.Path != "/" {
			t.Errorf("%s: the cookie is %s", at, c.Raw)
		}
		if wantPath := u.Path + "/approvals"; d.path != wantPath {
			t.Errorf("%s: the page is at %q, want %q", at, d.path, wantPath)
		}
	}
	for _, at := range []string{"http://packs.example.com", "", "packs.example.com", "ftp://packs.example.com"} {
		if _, err := New(Options{PublicURL: at}); err == nil {
			t.Errorf("a page at %q", at)
		}
	}
}
