// Package login gets tokens from an OpenID Connect provider for a person who logs in,
// either in a browser (authorization code with PKCE) or on another device, by typing a
// code there (RFC 8628). It also renews and revokes tokens.
//
// It shows nothing, opens no browser and stores nothing. Package oidc finds out whose
// a token is.
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

// Options say which client asks for tokens, and for what. Issuer and Client are required.
type Options struct {
	// Issuer is the provider's URL, exactly as in its tokens.
	Issuer string
	// Client is the client ID of this program at the provider.
	Client string
	// Secret is the client secret. A client on a person's own machine has none.
	Secret string
	// Scopes are requested in addition to "openid", and to "offline_access" if the
	// provider supports it.
	Scopes []string
	// Resource is the URL of the server for which the tokens are (RFC 8707).
	Resource string
	// HTTP makes requests to the provider; nil is a client that uses only TLS, or plain
	// HTTP on this machine.
	HTTP *http.Client
}

// A Provider issues tokens. It is safe for concurrent use. Make one with [Open].
type Provider struct {
	o      Options
	about  metadata
	scopes []string
	ids    *oidc.IDTokenVerifier
}

// metadata is the provider's discovery document.
type metadata struct {
	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Device      string   `json:"device_authorization_endpoint"`
	Revoke      string   `json:"revocation_endpoint"`
	Scopes      []string `json:"scopes_supported"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	SaysIssuer  bool     `json:"authorization_response_iss_parameter_supported"`
}

// Tokens are what a person gets by logging in. They are secrets.
type Tokens struct {
	Access  string
	Refresh string    // renews the tokens; empty: they cannot be renewed
	Until   time.Time // when Access expires; zero: the provider did not say
}

// A RefusedError is a refusal in the provider's words.
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

// maxWords bounds how much of a provider's words is shown, in bytes.
const maxWords = 300

func newRefused(code, words string) *RefusedError {
	return &RefusedError{Code: shown(code), Words: shown(words)}
}

// shown truncates a provider's words and makes them safe to show.
func shown(s string) string {
	return safetext.Line(strings.ToValidUTF8(s[:min(len(s), maxWords)], ""))
}

// Open asks the provider what it supports. Its document must name the same issuer.
func Open(ctx context.Context, o Options) (*Provider, error) {
	if o.HTTP == nil {
		o.HTTP = tokens.NewClient()
	}
	client := *o.HTTP
	// A redirect may lead to another server, which must get neither codes nor tokens.
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
