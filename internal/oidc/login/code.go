package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

// An Attempt is one person's attempt to log in with a browser. It can be used once.
type Attempt struct {
	URL   string // where to send the browser
	State string // comes back with the response; secret, and only this browser has it

	redirect string
	nonce    string // must be in the ID token, which proves that it was issued for this attempt
	verifier string // PKCE's verifier: makes the code usable in this attempt only
}

// ErrNotOurs is in the chain of an error if a response does not belong to the attempt. It
// was ignored, and the true response may still arrive.
var ErrNotOurs = errors.New("this answer does not belong to this login")

// Begin begins an attempt. The provider sends the browser back to the URL redirect, with
// its response in the query.
func (p *Provider) Begin(redirect string) (*Attempt, error) {
	u, err := url.Parse(p.about.Authorize)
	if err != nil || p.about.Authorize == "" {
		return nil, errors.New("the identity provider has no page for logging in")
	}
	a := &Attempt{State: rand.Text(), redirect: redirect, nonce: rand.Text(), verifier: rand.Text() + rand.Text()}
	challenge := sha256.Sum256([]byte(a.verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": p.o.Client, "redirect_uri": redirect, "scope": strings.Join(p.scopes, " "), "state": a.State, "nonce": a.nonce,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	if p.o.Resource != "" {
		q.Set("resource", p.o.Resource)
	}
	u.RawQuery = q.Encode()
	a.URL = u.String()
	return a, nil
}

// Finish returns the tokens for the response to an attempt. If the response belongs to
// another attempt or comes from another provider (RFC 9207), the error matches
// [ErrNotOurs].
func (p *Provider) Finish(ctx context.Context, a *Attempt, query url.Values) (Tokens, error) {
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(query[name]) > 1 {
			return Tokens{}, ErrNotOurs
		}
	}
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1 {
		return Tokens{}, ErrNotOurs
	}
	if (p.about.SaysIssuer || query.Has("iss")) && query.Get("iss") != p.o.Issuer {
		return Tokens{}, ErrNotOurs
	}
	if code := query.Get("error"); code != "" {
		return Tokens{}, newRefused(code, query.Get("error_description"))
	}
	got, err := p.redeem(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {query.Get("code")}, "redirect_uri": {a.redirect}, "code_verifier": {a.verifier},
	})
	if err != nil {
		return Tokens{}, err
	}
	// The ID token proves that the code, and the access token with it, was issued for this
	// attempt: a code from someone else's login has another nonce.
	id, err := p.ids.Verify(context.WithoutCancel(ctx), got.ID)
	switch {
	case err != nil:
		return Tokens{}, errors.New("the identity provider's ID token is not good: " + shown(err.Error()))
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.nonce)) != 1:
		return Tokens{}, errors.New("the identity provider's ID token belongs to another login")
	case len(id.Audience) > 1 && partyOf(id) != p.o.Client:
		return Tokens{}, errors.New("the identity provider's ID token is for another client")
	case id.AccessTokenHash != "" && id.VerifyAccessToken(got.Access) != nil:
		return Tokens{}, errors.New("the identity provider's ID token belongs to another access token")
	}
	return got.tokens(), nil
}

// partyOf returns the client for which an ID token with several audiences was issued.
func partyOf(id *oidc.IDToken) string {
	var claims struct {
		Party string `json:"azp"`
	}
	if id.Claims(&claims) != nil {
		return ""
	}
	return claims.Party
}
