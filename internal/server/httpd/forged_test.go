package httpd

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/packs-mcp/packs-mcp/test/idp"
)

// A forged token gets 401 on every path, with the link that says where to get a real one,
// and is in no log.
func TestForgedTokens(t *testing.T) {
	p := idp.Start(t)
	w := newWorld(t, triage)
	s := newStaff(t, w, p, nil)
	key, kid := p.Key()
	strangers, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{"iss": p.Issuer, "aud": idp.Audience, "sub": idp.Ada, "email": "ada@example.com", "groups": []string{"sre"}, "exp": time.Now().Add(time.Hour).Unix()}
	signed := func(with jose.SigningKey, o *jose.SignerOptions, changes map[string]any) string {
		t.Helper()
		c := maps.Clone(claims)
		maps.Copy(c, changes)
		body, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := jose.NewSigner(with, o)
		if err != nil {
			t.Fatal(err)
		}
		done, err := signer.Sign(body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := done.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	ours := jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}
	theirs := func(name string) jose.SigningKey {
		return jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: strangers, KeyID: name}}
	}
	real := signed(ours, nil, nil)
	parts := strings.Split(real, ".")
	c := s.Client("")
	ask := func(method, path, token string) (int, string) {
		r := c.Request(t.Context(), method, path, []byte(pingBody))
		r.Header.Del("Authorization")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		code, h, _ := c.Status(r)
		return code, h.Get("WWW-Authenticate")
	}
	if code, _ := ask("POST", "/mcp", real); code != 400 { // only the session is missing
		t.Fatalf("a good token: %d", code)
	}
	critical := (&jose.SignerOptions{}).WithHeader("crit", []string{"x"}).WithHeader("x", true)
	elsewhere := (&jose.SignerOptions{}).WithHeader("jku", "https://evil.example/keys").WithHeader("x5u", "https://evil.example/cert")
	for name, token := range map[string]string{
		"none":                         "",
		"another audience":             signed(ours, nil, map[string]any{"aud": "another"}),
		"another issuer":               signed(ours, nil, map[string]any{"iss": "https://login.example.com"}),
		"expired":                      signed(ours, nil, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"not yet good":                 signed(ours, nil, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"unsigned":                     base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + ".",
		"the public key as a password": signed(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: kid}}, nil, nil),
		"an unknown key":               signed(theirs("unknown"), nil, nil),
		"another key, the same name":   signed(theirs(kid), nil, nil),
		"a key of its own in the head": signed(theirs(kid), &jose.SignerOptions{EmbedJWK: true}, nil),
		"keys elsewhere":               signed(theirs(kid), elsewhere, nil),
		"a header that must be obeyed": signed(ours, critical, nil),
		"a name of the key in a path":  signed(theirs("../../keys"), nil, nil),
		"another person's claims":      parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"grace"}`)) + "." + parts[2],
		"one that was cut":             real[:len(real)-10],
		"two, as one":                  real + "," + real,
	} {
		for _, at := range [][2]string{{"POST", "/mcp"}, {"GET", "/sse"}, {"GET", "/approvals/control/pending"}} {
			code, challenge := ask(at[0], at[1], token)
			if code != 401 || !strings.Contains(challenge, `resource_metadata="`+s.Server.URL+`/.well-known/oauth-protected-resource/mcp"`) || strings.Contains(challenge, "invalid_token") != (token != "") {
				t.Errorf("%s: %s %s = %d, %q", name, at[0], at[1], code, challenge)
			}
		}
	}
	if log := w.log.String(); strings.Contains(log, parts[1]) || strings.Contains(log, parts[2]) {
		t.Error("a token is in the log")
	}
}
