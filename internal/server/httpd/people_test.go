package httpd

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/guard"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// newStaff serves a world to those with a token of a real identity provider.
func newStaff(t *testing.T, w *world, p *idp.Provider, change func(*oidc.Options)) *site {
	t.Helper()
	o := oidc.Options{Issuer: p.Issuer, Audience: idp.Audience}
	if change != nil {
		change(&o)
	}
	tokens, err := oidc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, w, func(o *Options) {
		o.Tokens, o.Issuer, o.Scopes = tokens, p.Issuer, []string{"openid", "email"}
	})
}

// People with tokens of an identity provider use the server beside those with fixed
// tokens, each under their own name in both eras, and a session belongs to its
// person.
func TestPeople(t *testing.T) {
	p := idp.Start(t)
	w := newWorld(t, triage)
	s := newStaff(t, w, p, nil)
	ada, grace := p.Token(idp.Ada, idp.Audience), p.Token(idp.Grace, idp.Audience)
	for name, token := range map[string]string{"ada@example.com ": ada, "grace@example.com ": grace} {
		older := s.Older(token, decide("once"))
		older.Initialize()
		for _, c := range []*servertest.Client{older, s.Newer(token, decide("once"))} {
			c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
		}
		found := 0
		for _, e := range w.entries() {
			if e.Event == audit.EventDecision && strings.HasPrefix(e.Caller, name) {
				found++
			}
		}
		if found != 2 {
			t.Errorf("the log has %d decisions of %q, want 2", found, name)
		}
	}
	older := s.Older(ada, nil)
	older.Initialize()
	r := older.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
	r.Header.Set("Authorization", "Bearer "+grace)
	if code, _, text := older.Status(r); code != 404 {
		t.Errorf("Grace in Ada's session: %d %q, want 404", code, text)
	}
	r = older.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
	r.Header.Set("Authorization", "Bearer "+p.Token(idp.Ada, idp.Audience))
	if code, _, text := older.Status(r); code != 200 {
		t.Errorf("Ada in her session, with her next token: %d %q, want 200", code, text)
	}
	if fixed := s.Older(tokenAda, nil); fixed.Initialize() == nil {
		t.Error("a fixed token is no longer accepted")
	}
	if log := w.log.String(); strings.Contains(log, ada) || strings.Contains(log, grace) {
		t.Error("a token is in the log")
	}
}

// A person whose name changes at the identity provider stays the same person: under
// the new name they cannot answer what they asked under the old one.
func TestPeopleWhoseNameChanges(t *testing.T) {
	p := idp.Start(t)
	tokens, err := oidc.New(oidc.Options{Issuer: p.Issuer, Audience: idp.Audience})
	if err != nil {
		t.Fatal(err)
	}
	var answers []string
	w := newWorld(t, triage)
	s := newSite(t, w, func(o *Options) {
		o.Tokens = tokens
		o.Approvals = func(_ http.ResponseWriter, _ *http.Request, who guard.Person) { answers = append(answers, who.Name) }
	})
	key, kid := p.Key()
	ends := time.Now().Add(time.Hour)
	asks := s.Newer(tokenOf(t, key, kid, p.Issuer, ends, "m", "mallory@example.com"), decide("once"))
	asks.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	renamed := s.Client(tokenOf(t, key, kid, p.Issuer, ends, "m", "molly@example.com"))
	if code, _, text := renamed.Status(renamed.Request(t.Context(), "GET", "/approvals/control/pending", nil)); code != 200 {
		t.Fatalf("GET /approvals/control/pending: %d %q", code, text)
	}
	for _, e := range w.entries() {
		if e.Event == audit.EventDecision && (len(answers) != 1 || answers[0] != e.Caller) {
			t.Errorf("%q asks, and answers as %q", e.Caller, answers)
		}
	}
}

// A request without a valid token gets 401 and where to get one. A person who may not
// use the server, or who cannot be verified now, gets another answer.
func TestNotPeople(t *testing.T) {
	p := idp.Start(t)
	w := newWorld(t, triage)
	s := newStaff(t, w, p, func(o *oidc.Options) { o.Allow = []string{"sre"} })
	status := func(token string) (int, string, string) {
		c := s.Client(token)
		r := c.Request(t.Context(), "POST", "/mcp", []byte(pingBody))
		if token == "" {
			r.Header.Del("Authorization")
		}
		code, h, _ := c.Status(r)
		return code, h.Get("WWW-Authenticate"), h.Get("Retry-After")
	}
	ada := p.Token(idp.Ada, idp.Audience)
	where := `resource_metadata="` + s.Server.URL + `/.well-known/oauth-protected-resource/mcp", scope="openid email"`
	for name, x := range map[string]struct {
		token     string
		want      int
		challenge string
	}{
		"nothing":            {"", 401, `Bearer realm="packs-mcp", ` + where},
		"another audience":   {p.Token(idp.Ada, "another"), 401, `Bearer realm="packs-mcp", error="invalid_token", ` + where},
		"no signature":       {ada[:strings.LastIndexByte(ada, '.')+1], 401, `Bearer realm="packs-mcp", error="invalid_token", ` + where},
		"none of the groups": {p.Token(idp.Grace, idp.Audience), 403, ""},
		"as it should be":    {ada, 400, ""}, // only the session is missing
	} {
		if code, challenge, _ := status(x.token); code != x.want || challenge != x.challenge {
			t.Errorf("%s: %d %q, want %d %q", name, code, challenge, x.want, x.challenge)
		}
	}
	code, _, text := s.Client("").Status(s.Client("").Request(t.Context(), "GET", "/.well-known/oauth-protected-resource/mcp", nil))
	var about map[string]any
	if err := json.Unmarshal([]byte(text), &about); err != nil || code != 200 || len(texts(about["scopes_supported"])) != 2 || texts(about["authorization_servers"])[0] != p.Issuer {
		t.Errorf("the metadata: %d %s", code, text)
	}

	p.Leave(true)
	c := newStaff(t, w, p, nil).Client(ada) // this server has not seen the keys
	if code, h, text := c.Status(c.Request(t.Context(), "POST", "/mcp", []byte(pingBody))); code != 503 || h.Get("Retry-After") == "" {
		t.Errorf("the provider is away: %d %q, want 503 and when to try again", code, text)
	}
}

// A stream ends when its token does. A call in progress does not.
func TestStreamEndsWithItsToken(t *testing.T) {
	p := idp.Start(t)
	// For the verifier it is an hour ago, so it accepts tokens that have expired.
	s := newStaff(t, newWorld(t, triage), p, func(o *oidc.Options) { o.Now = func() time.Time { return time.Now().Add(-time.Hour) } })
	key, kid := p.Key()
	ended := token(t, key, kid, p.Issuer, time.Now().Add(-30*time.Minute))
	older := s.Older(ended, nil)
	older.Initialize()
	for _, path := range []string{"/mcp", "/sse"} {
		r := older.Request(t.Context(), "GET", path, nil)
		r.Header.Set("Accept", "text/event-stream")
		done := make(chan int, 1)
		go func() {
			code, _, _ := older.Status(r) // reads to the end
			done <- code
		}()
		select {
		case code := <-done:
			if code != 200 {
				t.Errorf("GET %s = %d, want a stream that ends", path, code)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("GET %s: the stream goes on after its token", path)
		}
	}
	s.Newer(ended, decide("once")).OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
}

// People who have no state here any more take up no room.
func TestPeopleAreForgotten(t *testing.T) {
	p := idp.Start(t)
	s := newStaff(t, newWorld(t, triage), p, nil)
	key, kid := p.Key()
	for i := range 20 {
		c := s.Client(token(t, key, kid, p.Issuer, time.Now().Add(time.Hour), string(rune('a'+i))))
		c.Status(c.Request(t.Context(), "GET", "/nothing", nil))
	}
	s.Newer(p.Token(idp.Ada, idp.Audience), decide("once")).Ask("tools/list", nil)
	if n := len(s.http.people.all()); n != 21 {
		t.Errorf("%d people are known, want 21", n)
	}
	s.http.expire(time.Now())
	if n := len(s.http.people.all()); n != 1 {
		t.Errorf("%d people are known when one has a chat, want 1", n)
	}
	until(t, "nobody is known", func() bool {
		s.http.expire(time.Now().Add(2 * time.Hour))
		return len(s.http.people.all()) == 0
	})
}

// token makes a token as the provider does, for a subject.
func token(t *testing.T, key *rsa.PrivateKey, kid, issuer string, ends time.Time, subject ...string) string {
	t.Helper()
	return tokenOf(t, key, kid, issuer, ends, append(subject, rand.Text())[0], "someone@example.com")
}

// tokenOf makes a token as the provider does, for a subject with an address.
func tokenOf(t *testing.T, key *rsa.PrivateKey, kid, issuer string, ends time.Time, sub, email string) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"iss": issuer, "aud": idp.Audience, "sub": sub, "email": email, "exp": ends.Unix()})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
