package oidc_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func verifier(t *testing.T, p *idp.Provider, change func(*oidc.Options)) *oidc.Verifier {
	t.Helper()
	o := oidc.Options{Issuer: p.Issuer, Audience: idp.Audience}
	if change != nil {
		change(&o)
	}
	v, err := oidc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWhoATokenIsFor(t *testing.T) {
	p := idp.Start(t)
	v := verifier(t, p, nil)
	ada, err := v.Verify(t.Context(), p.Token(idp.Ada, idp.Audience))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(ada.Person, "ada@example.com ") || !strings.HasPrefix(ada.Key, strings.TrimPrefix(ada.Person, "ada@example.com ")) || !ada.Until.After(time.Now()) {
		t.Errorf("Verify() = %+v, want Ada with the beginning of her key, and an end", ada)
	}
	again, err := v.Verify(t.Context(), p.Token(idp.Ada, idp.Audience))
	if err != nil || again.Key != ada.Key || again.Person != ada.Person {
		t.Errorf("another token of Ada's is %+v, %v; want the same person", again, err)
	}
	grace, err := v.Verify(t.Context(), p.Token(idp.Grace, idp.Audience))
	if err != nil || grace.Key == ada.Key || grace.Person == ada.Person {
		t.Errorf("a token of Grace's is %+v, %v; want another person", grace, err)
	}
	if n := p.Asked(); n != 1 {
		t.Errorf("the provider was asked for its keys %d times, want once", n)
	}
}

func TestGroups(t *testing.T) {
	p := idp.Start(t)
	ada, grace := p.Token(idp.Ada, idp.Audience), p.Token(idp.Grace, idp.Audience)
	for name, x := range map[string]struct {
		claim      string
		allow      []string
		ada, grace bool
	}{
		"nobody is left out":     {"", nil, true, true},
		"one group":              {"", []string{"sre"}, true, false},
		"one of two":             {"", []string{"sre", "staff"}, true, true},
		"a group of nobody's":    {"", []string{"root"}, false, false},
		"inside an object":       {"realm_access.roles", []string{"sre"}, true, false},
		"a claim that is absent": {"roles", []string{"sre"}, false, false},
		"a path that ends":       {"groups.sre", []string{"sre"}, false, false},
	} {
		v := verifier(t, p, func(o *oidc.Options) { o.Groups, o.Allow = x.claim, x.allow })
		for who, want := range map[string]bool{ada: x.ada, grace: x.grace} {
			if _, err := v.Verify(t.Context(), who); (err == nil) != want || err != nil && !errors.Is(err, oidc.ErrForbidden) {
				t.Errorf("%s: %v, want allowed = %t", name, err, want)
			}
		}
	}
}

// A forger knows the provider's public key and the content of a real token.
func TestForged(t *testing.T) {
	p := idp.Start(t)
	v := verifier(t, p, nil)
	real := p.Token(idp.Ada, idp.Audience)
	key, kid := p.Key()
	strangers, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(part(t, real, 1), &claims); err != nil {
		t.Fatal(err)
	}
	with := func(change map[string]any) map[string]any {
		c := maps.Clone(claims)
		for k, v := range change {
			if c[k] = v; v == nil {
				delete(c, k)
			}
		}
		return c
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	otherIssuer := idp.Start(t).Token(idp.Ada, idp.Audience)
	halves := strings.Split(real, ".")
	past := time.Now().Add(-time.Hour).Unix()
	// The control: what the forger makes is accepted with the provider's own key, so
	// each row below is refused for its one difference.
	if _, err := v.Verify(t.Context(), sign(t, key, jose.RS256, kid, claims)); err != nil {
		t.Fatalf("a good token: %v", err)
	}
	for name, token := range map[string]string{
		"another client's":              p.Token(idp.Ada, "another"),
		"another issuer's":              otherIssuer,
		"another issuer, in the claims": sign(t, key, jose.RS256, kid, with(map[string]any{"iss": "https://login.example.com"})),
		"no issuer":                     sign(t, key, jose.RS256, kid, with(map[string]any{"iss": nil})),
		"no audience":                   sign(t, key, jose.RS256, kid, with(map[string]any{"aud": nil})),
		"an audience like ours":         sign(t, key, jose.RS256, kid, with(map[string]any{"aud": "packs-mcp.example.com"})),
		"expired":                       sign(t, key, jose.RS256, kid, with(map[string]any{"exp": past})),
		"without an end":                sign(t, key, jose.RS256, kid, with(map[string]any{"exp": nil})),
		"not yet good":                  sign(t, key, jose.RS256, kid, with(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})),
		"no subject":                    sign(t, key, jose.RS256, kid, with(map[string]any{"sub": nil})),
		"an empty subject":              sign(t, key, jose.RS256, kid, with(map[string]any{"sub": ""})),
		"no name":                       sign(t, key, jose.RS256, kid, with(map[string]any{"email": nil})),
		"a name that is a list":         sign(t, key, jose.RS256, kid, with(map[string]any{"email": []string{"ada@example.com"}})),
		"a name of two lines":           sign(t, key, jose.RS256, kid, with(map[string]any{"email": "ada@example.com\nroot"})),
		"a name that reads backwards":   sign(t, key, jose.RS256, kid, with(map[string]any{"email": "\u202eada@example.com"})),
		"a very long name":              sign(t, key, jose.RS256, kid, with(map[string]any{"email": strings.Repeat("a", 200)})),
		"an address nobody verified":    sign(t, key, jose.RS256, kid, with(map[string]any{"email_verified": false})),
		"the same, as text":             sign(t, key, jose.RS256, kid, with(map[string]any{"email_verified": "false"})),
		"another key, the same name":    sign(t, strangers, jose.RS256, kid, claims),
		"another key, no name":          sign(t, strangers, jose.RS256, "", claims),
		"a key of its own in the head":  signEmbedded(t, strangers, claims),
		"algorithm none":                segment(`{"alg":"none","typ":"JWT"}`) + "." + halves[1] + ".",
		"algorithm none, signed":        segment(`{"alg":"none","typ":"JWT"}`) + "." + halves[1] + "." + halves[2],
		"the public key as a password":  signHMAC(public, kid, halves[1]),
		"no signature":                  halves[0] + "." + halves[1] + ".",
		"one bit of the signature":      flip(real),
		"claims exchanged":              halves[0] + "." + segment(`{"sub":"ada"}`) + "." + halves[2],
		"not encrypted, but five parts": real + ".a.b",
		"four parts":                    real + ".a",
		"a space after it":              real + " ",
		"nothing":                       "",
		"two dots":                      "..",
		"far too long":                  real + strings.Repeat("A", 1<<20),
	} {
		if id, err := v.Verify(t.Context(), token); err == nil {
			t.Errorf("%s: it is %+v's", name, id)
		} else if strings.Contains(err.Error(), halves[2]) || errors.Is(err, oidc.ErrAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A withdrawn key is not accepted once the keys are old, even if tokens name no
// other.
func TestKeysChange(t *testing.T) {
	p := idp.Start(t)
	c := newClock()
	v := verifier(t, p, func(o *oidc.Options) { o.Now = c.Now })
	first := p.Token(idp.Ada, idp.Audience)
	if _, err := v.Verify(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	p.Rotate()
	second := p.Token(idp.Ada, idp.Audience)
	c.pass(6 * time.Second)
	if _, err := v.Verify(t.Context(), second); err != nil {
		t.Errorf("a token of the new key: %v", err)
	}
	if _, err := v.Verify(t.Context(), first); err == nil {
		t.Error("a token of the old key is accepted when the new keys are known")
	}
	// No token with the third key is used, and the second key is withdrawn.
	p.Rotate()
	if _, err := v.Verify(t.Context(), second); err != nil {
		t.Errorf("the keys are fresh: %v", err)
	}
	c.pass(16 * time.Minute)
	// The token itself would have expired, so make a new one with the withdrawn key.
	if _, err := v.Verify(t.Context(), second); err == nil {
		t.Error("a token of a key that was taken back is accepted")
	}
}

// People get in while the provider is away briefly, but not if it is away for long.
func TestProviderAway(t *testing.T) {
	p := idp.Start(t)
	p.Leave(true)
	c := newClock()
	v := verifier(t, p, func(o *oidc.Options) { o.Now = c.Now })
	key, kid := p.Key()
	token := sign(t, key, jose.RS256, kid, map[string]any{
		"iss": p.Issuer, "aud": idp.Audience, "sub": idp.Ada, "email": "ada@example.com", "exp": c.Now().Add(24 * time.Hour).Unix(),
	})
	if _, err := v.Verify(t.Context(), token); !errors.Is(err, oidc.ErrAway) {
		t.Errorf("before it was ever there: %v, want ErrAway", err)
	}
	p.Leave(false)
	if _, err := v.Verify(t.Context(), token); !errors.Is(err, oidc.ErrAway) {
		t.Errorf("a moment later: %v, want ErrAway, since it is not asked all the time", err)
	}
	c.pass(6 * time.Second)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	p.Leave(true)
	c.pass(30 * time.Minute)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("away for half an hour: %v", err)
	}
	c.pass(31 * time.Minute)
	if _, err := v.Verify(t.Context(), token); !errors.Is(err, oidc.ErrAway) {
		t.Errorf("away for an hour: %v, want ErrAway", err)
	}
	p.Leave(false)
	c.pass(6 * time.Second)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("when it is back again: %v", err)
	}
}

// Strangers cannot make us flood the provider with requests.
func TestUnknownKeys(t *testing.T) {
	p := idp.Start(t)
	c := newClock()
	v := verifier(t, p, func(o *oidc.Options) { o.Now = c.Now })
	if _, err := v.Verify(t.Context(), p.Token(idp.Ada, idp.Audience)); err != nil {
		t.Fatal(err)
	}
	before := p.Asked()
	strangers, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c.pass(6 * time.Second)
	var all sync.WaitGroup
	for i := range 50 {
		token := sign(t, strangers, jose.RS256, fmt.Sprintf("unknown %d", i), map[string]any{"iss": p.Issuer})
		all.Go(func() {
			if _, err := v.Verify(t.Context(), token); err == nil {
				t.Error("a stranger's token is accepted")
			}
		})
	}
	all.Wait()
	if n := p.Asked() - before; n != 1 {
		t.Errorf("50 tokens with unknown keys made us ask %d times, want once", n)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]oidc.Options{
		"no issuer":      {Audience: "x"},
		"no audience":    {Issuer: "https://login.example.com"},
		"plain HTTP":     {Issuer: "http://login.example.com", Audience: "x"},
		"a user in it":   {Issuer: "https://a:b@login.example.com", Audience: "x"},
		"a query":        {Issuer: "https://login.example.com?x=1", Audience: "x"},
		"another scheme": {Issuer: "file:///etc/passwd", Audience: "x"},
	} {
		if _, err := oidc.New(o); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

func sign(t *testing.T, key *rsa.PrivateKey, alg jose.SignatureAlgorithm, kid string, claims map[string]any) string {
	t.Helper()
	return signWith(t, jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, new(jose.SignerOptions), claims)
}

// signEmbedded returns a token with its own signing key in the header.
func signEmbedded(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	return signWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: key}, &jose.SignerOptions{EmbedJWK: true}, claims)
}

func signWith(t *testing.T, key jose.SigningKey, o *jose.SignerOptions, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(key, o)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
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

// signHMAC signs with the provider's public key as a shared secret.
func signHMAC(public []byte, kid, claims string) string {
	text := segment(fmt.Sprintf(`{"alg":"HS256","typ":"JWT","kid":%q}`, kid)) + "." + claims
	h := hmac.New(sha256.New, public)
	h.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func segment(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func part(t *testing.T, token string, i int) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[i])
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// flip changes one bit of a token's signature.
func flip(token string) string {
	i := strings.LastIndexByte(token, '.') + 20
	c := byte('A')
	if token[i] == c {
		c = 'B'
	}
	return token[:i] + string(c) + token[i+1:]
}
