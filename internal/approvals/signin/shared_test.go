//go:build unix

package signin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// Replicas are the desks of several servers behind one address.
type replicas struct {
	*site
	desks   []*Desk
	at      atomic.Int32 // which one answers, unless the request says
	renewed atomic.Int32 // how often the provider was asked for new tokens
}

func newReplicas(t *testing.T, url string, n int) *replicas {
	t.Helper()
	s := &replicas{site: &site{t: t, p: idp.Start(t), now: time.Now()}}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := s.desks[s.at.Load()]
		if i, err := strconv.Atoi(r.Header.Get("Replica")); err == nil {
			d = s.desks[i]
		}
		tell(d, w, r)
	}))
	t.Cleanup(web.Close)
	s.url = web.URL
	s.p.Redirect(s.url + Prefix + "/callback")
	v, err := oidc.New(oidc.Options{Issuer: s.p.Issuer, Audience: idp.Audience, Now: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: counting{&s.renewed}}
	for range n {
		m, keys := storetest.Replica(t, url, strings.Repeat("5e", 32))
		d, err := New(Options{
			PublicURL: s.url, Provider: login.Options{Issuer: s.p.Issuer, Client: idp.Audience, HTTP: client}, Verify: v.Verify,
			Logger: slog.New(slog.DiscardHandler), Now: s.clock, Shared: m, Keys: keys.Derive("test"),
		})
		if err != nil {
			t.Fatal(err)
		}
		s.desks = append(s.desks, d)
	}
	return s
}

// A counting client counts the requests that renew tokens.
type counting struct{ renewed *atomic.Int32 }

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		defer body.Close()
		if form, err := io.ReadAll(body); err == nil && strings.Contains(string(form), "grant_type=refresh_token") {
			c.renewed.Add(1)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// ask returns what the page is at one replica.
func (s *replicas) ask(b *http.Client, replica int) string {
	r, err := http.NewRequestWithContext(context.Background(), "GET", s.url+Prefix+"/", nil)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Replica", strconv.Itoa(replica))
	res, err := b.Do(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return res.Header.Get("Location") + string(text)
}

// due has the token of every session end now, on every replica.
func (s *replicas) due() {
	s.t.Helper()
	d := s.desks[0]
	if err := d.shared.Sync(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	d.sessions.mu.Lock()
	all := make([]*Session, 0, len(d.sessions.all))
	for _, one := range d.sessions.all {
		all = append(all, one)
	}
	d.sessions.mu.Unlock()
	for _, one := range all {
		if now, err := d.meet(s.t.Context(), one.id); now == nil || err != nil {
			continue
		}
		one.mu.Lock()
		one.who.Until = s.clock()
		one.mu.Unlock()
		if err := d.save(s.t.Context(), one, ""); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Requests at several replicas at once renew a session's token once: a provider that gives
// out each refresh token for one use ends the sign-in of who uses one twice.
func TestReplicasRenewOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		s := newReplicas(t, e.URL(), 3)
		b := s.login(idp.Ada)
		for round := range 3 {
			if got := s.ask(b, 0); got != "in staff,sre" {
				t.Fatalf("the page is %q", got)
			}
			s.due()
			var all sync.WaitGroup
			for n := range 12 {
				all.Go(func() {
					if got := s.ask(b, n%3); got != "in staff,sre" {
						t.Errorf("round %d: at replica %d the page is %q", round, n%3, got)
					}
				})
			}
			all.Wait()
			if got := int(s.renewed.Load()); got != round+1 {
				t.Fatalf("after %d rounds the provider was asked for new tokens %d times", round+1, got)
			}
		}
		// A replica that ended while it asked keeps nobody out for long.
		s.desks[1].patience = 100 * time.Millisecond
		s.due()
		d := s.desks[0]
		for id := range d.sessions.all {
			one, err := d.meet(t.Context(), id)
			if err != nil || one == nil {
				t.Fatal(one, err)
			}
			if mine, err := d.claim(t.Context(), one); !mine || err != nil {
				t.Fatalf("claim = %v, %v", mine, err)
			}
		}
		if got := s.ask(b, 1); got != "in staff,sre" {
			t.Errorf("when the other replica did not finish, the page is %q", got)
		}
		// Who left a group is seen with the next token, whichever replica asks for it.
		s.p.Leaves(idp.Ada)
		s.due()
		for i := range s.desks {
			if got := s.ask(b, i); got != "in " {
				t.Errorf("at replica %d, the page of a person who left is %q", i, got)
			}
		}
	})
}

// All replicas count the sessions of a person, and the store drops one that no replica used.
func TestSessionsOfReplicas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		s := newReplicas(t, e.URL(), 2)
		grace := s.login(idp.Grace)
		var all []*http.Client
		for n := range maxEach + 1 {
			s.at.Store(int32(n % 2))
			all = append(all, s.login(idp.Ada))
		}
		for i, b := range all {
			for replica := range s.desks {
				if got := strings.HasPrefix(s.ask(b, replica), "in "); got != (i > 0) {
					t.Errorf("session %d of %d at replica %d is good: %v", i, len(all), replica, got)
				}
			}
		}
		if got := s.ask(grace, 1); got != "in staff" {
			t.Errorf("somebody else's session: %q", got)
		}
		// After half a day it ends on all, though it was used all the time.
		s.pass(longest)
		for replica := range s.desks {
			if got := s.ask(grace, replica); strings.HasPrefix(got, "in ") {
				t.Errorf("after half a day, at replica %d: %q", replica, got)
			}
		}
		if err := s.desks[0].shared.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if have := len(s.desks[0].shared.All(sharedPrefix)); have != maxEach {
			t.Errorf("the store has %d sessions, want the %d of ada", have, maxEach)
		}
	})
}
