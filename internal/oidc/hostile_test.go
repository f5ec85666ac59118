package oidc_test

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// signText signs text as it is, like a provider that lets people choose a claim.
func signText(t *testing.T, key *rsa.PrivateKey, kid, text string) *jose.JSONWebSignature {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A token with ambiguous claims, or with numbers that are not times, is refused.
func TestAmbiguousClaims(t *testing.T) {
	p := idp.Start(t)
	v := verifier(t, p, nil)
	key, kid := p.Key()
	claims := func(more string) string {
		return fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"mallory","email":"m@example.com","exp":%d%s}`, p.Issuer, idp.Audience, time.Now().Add(time.Hour).Unix(), more)
	}
	compact := func(text string) string {
		token, err := signText(t, key, kid, text).CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if _, err := v.Verify(t.Context(), compact(claims(""))); err != nil {
		t.Fatalf("a good token: %v", err)
	}
	for name, text := range map[string]string{
		"two subjects":               claims(`,"sub":"ada"`),
		"a subject in capitals":      claims(`,"SUB":"ada"`),
		"the same with a long s":     claims(",\"\u017fub\":\"ada\""),
		"an issuer in capitals":      claims(`,"Iss":"x"`),
		"two audiences":              claims(fmt.Sprintf(`,"aud":%q`, idp.Audience)),
		"an audience in capitals":    strings.Replace(claims(""), `"aud"`, `"AUD"`, 1),
		"two ends":                   claims(`,"exp":99999999999`),
		"an end in capitals":         claims(`,"EXP":99999999999`),
		"a name that is not UTF-8":   strings.Replace(claims(""), `m@`, "\xff@", 1),
		"a subject of half a letter": strings.Replace(claims(""), `mallory`, `\ud800`, 1),
		"an endless time":            claims(`,"nbf":1e400`),
		"a time before all":          strings.Replace(claims(""), `"exp":`, `"exp":-`, 1),
		"a list":                     `[` + claims("") + `]`,
		"two values":                 claims("") + claims(""),
	} {
		if id, err := v.Verify(t.Context(), compact(text)); err == nil {
			t.Errorf("%s: it is %+v's", name, id)
		}
	}
	// The JSON form of a signature has room for unsigned data.
	var form map[string]any
	if err := json.Unmarshal([]byte(signText(t, key, kid, claims("")).FullSerialize()), &form); err != nil {
		t.Fatal(err)
	}
	form["header"] = map[string]string{"x": "a.b.c"}
	token, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := v.Verify(t.Context(), string(token)); err == nil {
		t.Errorf("a signature as JSON: it is %+v's", id)
	}
}

// A token that the provider signed for something other than access, such as a notice that a
// person logged out, is refused, whatever its audience. So is an address of which the
// provider does not plainly say that it is verified, or that says nothing of it.
func TestTokensForSomethingElse(t *testing.T) {
	p := idp.Start(t)
	v := verifier(t, p, nil)
	key, kid := p.Key()
	token := func(typ any, verified any) string {
		o := &jose.SignerOptions{}
		if typ != nil {
			o.WithHeader("typ", typ)
		}
		claims := map[string]any{"iss": p.Issuer, "aud": idp.Audience, "sub": "m", "email": "m@example.com", "exp": time.Now().Add(time.Hour).Unix()}
		if verified != nil {
			claims["email_verified"] = verified
		}
		return signWith(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, o, claims)
	}
	for typ, want := range map[any]bool{
		nil: true, "JWT": true, "jwt": true, "at+jwt": true, "application/at+jwt": true,
		"logout+jwt": false, "secevent+jwt": false, "dpop+jwt": false, "oauth-authz-req+jwt": false, "": false, "JWT ": false, 7: false, true: false,
	} {
		if _, err := v.Verify(t.Context(), token(typ, nil)); (err == nil) != want {
			t.Errorf("a token of the type %v: %v, want accepted = %t", typ, err, want)
		}
	}
	for _, x := range []struct {
		verified any
		want     bool
	}{{true, true}, {"true", true}, {false, false}, {"false", false}, {"False", false}, {0, false}, {"", false}, {"no", false}, {json.RawMessage("null"), false}, {[]bool{true}, false}} {
		if _, err := v.Verify(t.Context(), token("JWT", x.verified)); (err == nil) != x.want {
			t.Errorf("email_verified %v: %v, want accepted = %t", x.verified, err, x.want)
		}
	}
}

// Two people with the same chosen name are distinct, even if one of them can try many
// subjects to match the beginning of the other's key.
func TestNamesakes(t *testing.T) {
	p := idp.Start(t)
	v := verifier(t, p, nil)
	key, kid := p.Key()
	const tried = 8 // hexadecimal digits
	seen := map[string]string{}
	var one, two string
	for i := 0; one == ""; i++ {
		sub := fmt.Sprint(i)
		sum := sha256.Sum256([]byte(p.Issuer + "\x00" + sub))
		begin := hex.EncodeToString(sum[:])[:tried]
		if other, ok := seen[begin]; ok {
			one, two = other, sub
		}
		seen[begin] = sub
	}
	var names []string
	for _, sub := range []string{one, two} {
		id, err := v.Verify(t.Context(), sign(t, key, jose.RS256, kid, map[string]any{"iss": p.Issuer, "aud": idp.Audience, "sub": sub, "email": "ada@example.com", "exp": time.Now().Add(time.Hour).Unix()}))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, id.Person)
	}
	if names[0] == names[1] {
		t.Errorf("the subjects %q and %q are both %q", one, two, names[0])
	}
}

// While the provider is away, a token with an unknown key may be valid: a client must
// not discard it.
func TestNewKeyWhileAway(t *testing.T) {
	p := idp.Start(t)
	c := newClock()
	v := verifier(t, p, func(o *oidc.Options) { o.Now = c.Now })
	if _, err := v.Verify(t.Context(), p.Token(idp.Ada, idp.Audience)); err != nil {
		t.Fatal(err)
	}
	p.Rotate()
	token := p.Token(idp.Ada, idp.Audience)
	p.Leave(true)
	c.pass(6 * time.Second)
	for range 2 {
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, oidc.ErrAway) {
			t.Errorf("a token of a new key: %v, want ErrAway", err)
		}
	}
	p.Leave(false)
	c.pass(6 * time.Second)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}
