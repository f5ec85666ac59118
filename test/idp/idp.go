// Package idp is an OpenID Connect provider for tests, built with a library for real
// providers. Two people can log in with a password. Its access tokens are signed JWTs with
// the usual claims.
package idp

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"golang.org/x/text/language"
)

// Audience is the audience of the provider's tokens.
const Audience = "packs-mcp"

// The people who can log in.
const (
	Ada   = "ada"   // in the groups sre and staff
	Grace = "grace" // in the group staff
)

const (
	password = "only for tests"
	callback = "http://localhost/auth/callback"
)

// A Provider issues tokens. It ends with its test.
type Provider struct {
	Issuer string // its URL

	t     testing.TB
	store *store
	asked atomic.Int32 // how often its keys were requested
	away  atomic.Bool
}

// Start starts a provider on this machine.
func Start(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t}
	var handler http.Handler
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		if r.URL.Path == "/keys" {
			p.asked.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	p.Issuer = "http://" + strings.Replace(web.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
	p.store = &store{Storage: storage.NewStorageWithClients(people{}, map[string]*storage.Client{
		Audience:  storage.NativeClient(Audience, callback),
		"another": storage.NativeClient("another", callback),
	})}
	p.Rotate()
	handler = exampleop.SetupServer(p.Issuer+"/", p.store, slog.New(slog.DiscardHandler), false, op.WithAllowInsecure())
	p.Issuer += "/"
	web.Start()
	t.Cleanup(web.Close)
	return p
}

// Asked returns how often the keys were requested.
func (p *Provider) Asked() int { return int(p.asked.Load()) }

// Leave makes the provider stop answering, or answer again.
func (p *Provider) Leave(away bool) { p.away.Store(away) }

// Rotate makes the provider sign with a new key, and withdraw the old one.
func (p *Provider) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.t.Fatal(err)
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.key = &signingKey{id: rand.Text(), private: key}
}

// Key returns the key that the provider signs with, and its name.
func (p *Provider) Key() (*rsa.PrivateKey, string) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	return p.store.key.private, p.store.key.id
}

// Redirect allows clients to have browsers redirected to a URL. A URL on this machine may use
// any port.
func (p *Provider) Redirect(url string) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.redirects = append(p.store.redirects, url)
}

// Leaves removes a person from all groups, beginning with the next token.
func (p *Provider) Leaves(person string) {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.left = append(p.store.left, person)
}

// Token logs a person in, as a browser would, and returns the access token for a client:
// [Audience], or "another".
func (p *Provider) Token(person, client string) string {
	p.t.Helper()
	const verifier = "the-verifier-of-a-test-which-is-long-enough-to-be-one"
	next := p.Login(person, p.url("auth")+"?"+url.Values{
		"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid email"}, "state": {"x"},
		"code_challenge": {verifier}, "code_challenge_method": {"plain"},
	}.Encode())
	res, err := here().PostForm(p.url("oauth/token"), url.Values{
		"grant_type": {"authorization_code"}, "code": {next.Query().Get("code")}, "redirect_uri": {callback}, "client_id": {client}, "code_verifier": {verifier},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct {
		Token string `json:"access_token"`
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || json.Unmarshal(body, &out) != nil || out.Token == "" {
		p.t.Fatalf("the provider gives no token: %s, %v", body, err)
	}
	return out.Token
}

// Login acts as the browser of a person whom a client sent to a URL of the provider. It
// returns the URL to which the provider redirects with its response.
func (p *Provider) Login(person, at string) *url.URL {
	p.t.Helper()
	next := p.ask(here().Get(at))
	next = p.ask(here().PostForm(p.url("login/username"), url.Values{"username": {person}, "password": {password}, "id": {next.Query().Get("authRequestID")}}))
	return p.ask(here().Get(p.url(next.String())))
}

// Device acts as a person on another device, who opens the URL and enters the code that
// a client shows, logs in, and allows it or not.
func (p *Provider) Device(person, at, code string, allow bool) {
	p.t.Helper()
	browser := here()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	browser.Jar = jar
	action := "denied"
	if allow {
		action = "allowed"
	}
	res, err := browser.PostForm(at+"/login", url.Values{"user_code": {code}, "username": {person}, "password": {password}})
	if err != nil {
		p.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("logging in on a device: %s", res.Status)
	}
	res, err = browser.Get(at + "/confirm?action=" + action)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("confirming on a device: %s", res.Status)
	}
}

// here returns a client that follows no redirects, to this machine.
func here() *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, strings.Replace(addr, "localhost", "127.0.0.1", 1))
		}},
	}
}

func (p *Provider) url(path string) string {
	if strings.HasPrefix(path, "http") {
		return path
	}
	return p.Issuer + strings.TrimPrefix(path, "/")
}

// ask returns the target of a redirect.
func (p *Provider) ask(res *http.Response, err error) *url.URL {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil || to.String() == "" {
		body, _ := io.ReadAll(res.Body)
		p.t.Fatalf("logging in: %s: %s", res.Status, body)
	}
	return to
}

// A store is the library's own, with our people, keys and claims.
type store struct {
	*storage.Storage
	mu        sync.Mutex
	key       *signingKey
	redirects []string // where clients may send browsers, besides callback
	left      []string // people who are in no group any more
}

func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return client{c, slices.Concat(c.RedirectURIs(), s.redirects)}, nil
}

type client struct {
	op.Client
	redirects []string
}

func (c client) RedirectURIs() []string { return c.redirects }

func (c client) GrantTypes() []oidc.GrantType {
	return slices.Concat(c.Client.GrantTypes(), []oidc.GrantType{oidc.GrantTypeDeviceCode})
}

func (client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

func (s *store) GetPrivateClaimsFromScopes(_ context.Context, user, _ string, _ []string) (map[string]any, error) {
	u := people{}.GetUserByID(user)
	groups := []string{"staff"}
	if user == Ada {
		groups = append(groups, "sre")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.left, user) {
		groups = nil
	}
	return map[string]any{"email": u.Email, "email_verified": u.EmailVerified, "groups": groups, "realm_access": map[string]any{"roles": groups}}, nil
}

func (s *store) SigningKey(context.Context) (op.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key, nil
}

func (s *store) KeySet(context.Context) ([]op.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []op.Key{publicKey{s.key}}, nil
}

type signingKey struct {
	id      string
	private *rsa.PrivateKey
}

func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                    { return k.private }
func (k *signingKey) ID() string                                  { return k.id }

type publicKey struct{ *signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.private.PublicKey }

// people are those who can log in.
type people struct{}

func (people) GetUserByID(id string) *storage.User {
	switch id {
	case Ada, Grace:
		return &storage.User{ID: id, Username: id, Password: password, Email: id + "@example.com", EmailVerified: true, PreferredLanguage: language.English}
	}
	return nil
}

func (p people) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

func (people) ExampleClientID() string { return "service" }
