// Package login gets tokens from an OpenID Connect provider for a person who logs in: in
// a browser, by a code with PKCE, or on another device, by a code that the person types
// there (RFC 8628). It also renews tokens, and gives them back.
//
// It shows nothing, opens no browser and keeps nothing. Whose a token is, package oidc
// says.
package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	tokens "github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Options say who asks for tokens, and for what. Issuer and Client are required.
type Options struct {
	// Issuer is the provider's URL, to the letter as its tokens have it.
	Issuer string
	// Client is the name under which the provider knows this program.
	Client string
	// Secret proves to the provider that this is the client; empty for a client without
	// one, which a program on a person's own machine always is.
	Secret string
	// Scopes are what is asked for, besides "openid", and "offline_access" where the
	// provider has it.
	Scopes []string
	// Resource is the URL of the server that the tokens are for (RFC 8707).
	Resource string
	// HTTP asks the provider; nil is one that asks it over TLS only, or over plain HTTP
	// on this machine.
	HTTP *http.Client
}

// A Provider issues tokens. It is safe for concurrent use. Make one with [Open].
type Provider struct {
	o      Options
	about  metadata
	scopes []string
	ids    *oidc.IDTokenVerifier
}

// metadata is what a provider says of itself.
type metadata struct {
	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Device      string   `json:"device_authorization_endpoint"`
	Revoke      string   `json:"revocation_endpoint"`
	Scopes      []string `json:"scopes_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	SaysIssuer  bool     `json:"authorization_response_iss_parameter_supported"`
}

// Tokens are what a person who logged in has. They are secrets.
type Tokens struct {
	Access  string
	Refresh string    // renews them; empty: they cannot be renewed
	Until   time.Time // when Access ends; zero: the provider did not say
}

// A RefusedError is the provider's refusal, as it said it.
type RefusedError struct {
	Code  string // as in RFC 6749, such as "access_denied"; one line, safe to show
	Words string // for people; one line, safe to show; may be empty
}

func (e *RefusedError) Error() string {
	if e.Words == "" {
		return "the identity provider refuses: " + e.Code
	}
	return fmt.Sprintf("the identity provider refuses: %s (%s)", e.Code, e.Words)
}

// maxWords bounds what is shown of a provider's own words, in bytes.
const maxWords = 300

func newRefused(code, words string) *RefusedError {
	return &RefusedError{Code: shown(code), Words: shown(words)}
}

// shown makes a provider's words short and safe to show.
func shown(s string) string {
	return safetext.Line(strings.ToValidUTF8(s[:min(len(s), maxWords)], ""))
}

// Open asks the provider what it offers. What it answers has to name the same issuer.
func Open(ctx context.Context, o Options) (*Provider, error) {
	if o.HTTP == nil {
		o.HTTP = tokens.NewClient()
	}
	client := *o.HTTP
	// Elsewhere is another server, which must get neither codes nor tokens.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTP = &client
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), tokens.Bounded(o.HTTP)), o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("asking the identity provider %q: %s", o.Issuer, shown(err.Error()))
	}
	p := &Provider{o: o, scopes: slices.Clone(o.Scopes), ids: found.Verifier(&oidc.Config{ClientID: o.Client})}
	if err := found.Claims(&p.about); err != nil {
		return nil, fmt.Errorf("asking the identity provider %q: %s", o.Issuer, shown(err.Error()))
	}
	for name, address := range map[string]string{"authorization_endpoint": p.about.Authorize, "token_endpoint": p.about.Token, "device_authorization_endpoint": p.about.Device, "revocation_endpoint": p.about.Revoke} {
		if u, err := url.Parse(address); address != "" && (err != nil || !tokens.Trusted(u)) {
			return nil, fmt.Errorf("the identity provider's %s %q is not an https URL", name, address)
		}
	}
	if p.about.Token == "" {
		return nil, errors.New("the identity provider names no token_endpoint")
	}
	if !slices.Contains(p.scopes, oidc.ScopeOpenID) {
		p.scopes = append(p.scopes, oidc.ScopeOpenID)
	}
	if slices.Contains(p.about.Scopes, oidc.ScopeOfflineAccess) && !slices.Contains(p.scopes, oidc.ScopeOfflineAccess) {
		p.scopes = append(p.scopes, oidc.ScopeOfflineAccess)
	}
	return p, nil
}

// HasBrowser reports whether the provider has a page for logging in.
func (p *Provider) HasBrowser() bool { return p.about.Authorize != "" }

// HasDevice reports whether people can log in on another device.
func (p *Provider) HasDevice() bool { return p.about.Device != "" }
