// Package oidc identifies the owner of an access token: a signed JWT that an OpenID
// Connect provider issued for this server.
//
// It issues no tokens, asks nobody to log in, and keeps no sessions. It does not
// decide what a person may do.
package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Options say which tokens are accepted. Issuer and Audience are required.
type Options struct {
	// Issuer is the provider's URL, exactly as in its tokens.
	Issuer string
	// Audience is the required audience of tokens: this server.
	Audience string
	// Person is the claim that names people to each other; empty is "email".
	Person string
	// Groups is the claim with a person's groups; empty is "groups". Names separated by
	// dots lead into an object, as in "realm_access.roles".
	Groups string
	// Allow lists the groups whose members may use the server; empty: everyone with a
	// token for it.
	Allow []string
	// Verified is told whose each good token is, before Verify returns, and also of those
	// who may not use the server. nil does nothing.
	Verified func(context.Context, *Identity)
	// Client makes requests to the provider; nil is one that uses only TLS, or plain
	// HTTP on this machine.
	Client *http.Client
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// An Identity is the person for whom a token was issued.
type Identity struct {
	// Key is the same for all tokens of one person, and different for everyone else: a
	// digest of the provider and the person's subject there.
	Key string
	// Person is the person's name for other people, followed by a part of Key: a
	// provider may later give a name to someone else, or to two people.
	Person string
	// Groups are the person's groups according to the token, if it names any.
	Groups []string
	// Issued is when the token was issued, or when it was first verified if it does not say.
	Issued time.Time
	// Until is when the token is no longer accepted.
	Until time.Time
}

var (
	// ErrAway is in the chain of an error if the provider does not answer, so the token
	// cannot be checked now.
	ErrAway = errors.New("the identity provider does not answer")
	// ErrForbidden is in the chain if the token is valid but its person may not use the
	// server.
	ErrForbidden = errors.New("this person is in none of the groups that may use the server")
)

const (
	// maxToken is the maximum length of a token, in bytes. A token that lists many groups
	// has several thousand.
	maxToken = 16 << 10
	// skew is how much the provider's clock may differ from ours.
	skew = 30 * time.Second
	// maxName is the maximum length of a person's name, in bytes.
	maxName = 128
)

// algorithms returns the algorithms that need no shared secret. Without this list a
// token could choose "none", or use a public key as the secret of an HMAC.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// A Verifier reads tokens. It is safe for concurrent use. Make one with [New].
type Verifier struct {
	o    Options
	keys *keys
	want *oidc.Config // required claims of a token
}

// New returns a Verifier. It asks the provider nothing yet.
func New(o Options) (*Verifier, error) {
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the issuer %q is not a URL such as https://login.example.com", o.Issuer)
	case !Trusted(u):
		return nil, fmt.Errorf("the issuer %q must be contacted over https, since its answers decide who is who", o.Issuer)
	case o.Audience == "":
		return nil, errors.New("an audience is required: what the provider's tokens for this server are for")
	}
	if o.Person == "" {
		o.Person = "email"
	}
	if o.Groups == "" {
		o.Groups = "groups"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Client == nil {
		o.Client = NewClient()
	}
	v := &Verifier{o: o, keys: &keys{issuer: o.Issuer, client: o.Client, now: o.Now}}
	var algs []string
	for _, a := range algorithms() {
		algs = append(algs, string(a))
	}
	v.want = &oidc.Config{ClientID: o.Audience, SupportedSigningAlgs: algs, Now: func() time.Time { return o.Now().Add(-skew) }}
	return v, nil
}

// Verify returns the person for whom a token was issued. The error says, for a log,
// why the token is refused, and never contains the token. It may match [ErrAway] or
// [ErrForbidden].
func (v *Verifier) Verify(ctx context.Context, token string) (*Identity, error) {
	if len(token) > maxToken || strings.Count(token, ".") != 2 || strings.ContainsAny(token, " \t\r\n") {
		return nil, errors.New("it is not a signed token of an identity provider")
	}
	payload, err := v.keys.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := plain(payload); err != nil {
		return nil, err
	}
	id, err := oidc.NewVerifier(v.o.Issuer, signed(payload), v.want).Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	if id.Subject == "" {
		return nil, errors.New("it names no subject")
	}
	var claims map[string]json.RawMessage
	if err := id.Claims(&claims); err != nil {
		return nil, errors.New("its claims cannot be read")
	}
	sum := sha256.Sum256([]byte(v.o.Issuer + "\x00" + id.Subject))
	key := hex.EncodeToString(sum[:])
	name, err := v.name(claims)
	if err != nil {
		return nil, err
	}
	in := groups(claims, v.o.Groups)
	who := &Identity{Key: key, Person: approvers.Provided(name, key), Groups: in, Issued: id.IssuedAt, Until: id.Expiry.Add(skew)}
	if who.Issued.IsZero() {
		who.Issued = v.o.Now()
	}
	if v.o.Verified != nil {
		v.o.Verified(ctx, who)
	}
	if len(v.o.Allow) > 0 && !slices.ContainsFunc(in, func(g string) bool { return slices.Contains(v.o.Allow, g) }) {
		return nil, fmt.Errorf("%w (%s)", ErrForbidden, name)
	}
	return who, nil
}

// plain refuses ambiguous claims: a duplicate name, text that is not UTF-8, or a name
// such as "SUB" that the library would take for "sub".
func plain(payload []byte) error {
	claims, err := strictjson.Parse(payload)
	if err != nil {
		return fmt.Errorf("its claims cannot be read: at byte %d: %s", err.Offset, err.Problem)
	}
	for _, m := range claims.Members {
		for _, name := range []string{"iss", "sub", "aud", "exp", "nbf", "iat"} {
			if m.Key != name && strings.EqualFold(m.Key, name) {
				return fmt.Errorf("its claim %q looks like %q", m.Key, name)
			}
		}
	}
	return nil
}

// signed is the payload of a token whose signature was already verified here, since the
// library would hide why that failed.
type signed []byte

// VerifySignature implements [oidc.KeySet].
func (s signed) VerifySignature(context.Context, string) ([]byte, error) { return s, nil }

// name returns a person's name.
func (v *Verifier) name(claims map[string]json.RawMessage) (string, error) {
	var name string
	if err := json.Unmarshal(claims[v.o.Person], &name); err != nil || name == "" {
		return "", fmt.Errorf("it has no claim %q, which is to name its person", v.o.Person)
	}
	if len(name) > maxName || safetext.Line(name) != name || strings.TrimSpace(name) != name {
		return "", fmt.Errorf("its claim %q is too long, or has characters that cannot be shown", v.o.Person)
	}
	if verified, said := claims["email_verified"]; v.o.Person == "email" && said && !isTrue(verified) {
		return "", errors.New("the provider does not say that it has verified the email address in it")
	}
	return name, nil
}

// isTrue reports whether a claim is true. Some providers write it as text.
func isTrue(claim json.RawMessage) bool {
	s := string(claim)
	return s == "true" || s == `"true"`
}

// groups returns the groups that a claim names: a list of texts, or one text.
func groups(claims map[string]json.RawMessage, name string) []string {
	raw, ok := claims[name]
	for !ok {
		var first string
		first, name, ok = strings.Cut(name, ".")
		if !ok {
			return nil
		}
		var inner map[string]json.RawMessage
		if json.Unmarshal(claims[first], &inner) != nil {
			return nil
		}
		claims = inner
		raw, ok = claims[name]
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	return nil
}

// Trusted reports whether nobody on the network path can change a URL's answers.
func Trusted(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}

// NewClient returns a client that requests only trusted addresses, even after
// redirects.
func NewClient() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: onlyTrusted{&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
	}}}
}

type onlyTrusted struct{ next http.RoundTripper }

func (t onlyTrusted) RoundTrip(r *http.Request) (*http.Response, error) {
	if !Trusted(r.URL) {
		return nil, fmt.Errorf("%s is not contacted: the identity provider is contacted over https only", r.URL.Host)
	}
	return t.next.RoundTrip(r)
}
