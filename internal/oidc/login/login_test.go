package login_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

const back = "http://127.0.0.1/callback"

func open(t *testing.T, p *idp.Provider) *login.Provider {
	t.Helper()
	p.Redirect(back)
	at, err := login.Open(t.Context(), login.Options{Issuer: p.Issuer, Client: idp.Audience, Scopes: []string{"email"}, Resource: "https://packs.example.com/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// whose returns the owner of an access token.
func whose(t *testing.T, p *idp.Provider, token string) string {
	t.Helper()
	v, err := oidc.New(oidc.Options{Issuer: p.Issuer, Audience: idp.Audience})
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(id.Person, " ")
	return name
}

// A person who logs in with a browser gets tokens that can be renewed until they are
// revoked.
func TestBrowser(t *testing.T) {
	p := idp.Start(t)
	at := open(t, p)
	a, err := at.Begin(back)
	if err != nil {
		t.Fatal(err)
	}
	q := must(url.Parse(a.URL)).Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("resource") != "https://packs.example.com/mcp" || q.Get("scope") != "email openid offline_access" {
		t.Errorf("the browser is sent to %s", a.URL)
	}
	answer := p.Login(idp.Ada, a.URL).Query()
	got, err := at.Finish(t.Context(), a, answer)
	if err != nil {
		t.Fatal(err)
	}
	if who := whose(t, p, got.Access); who != "ada@example.com" || got.Refresh == "" || got.Until.IsZero() {
		t.Errorf("the token is %s's, %+v", who, got)
	}
	if _, err := at.Finish(t.Context(), a, answer); err == nil {
		t.Error("a code is good twice")
	}
	renewed, err := at.Renew(t.Context(), got)
	if err != nil || renewed.Access == got.Access || whose(t, p, renewed.Access) != "ada@example.com" {
		t.Fatalf("Renew() = %v", err)
	}
	if err := at.Revoke(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	if _, err := at.Renew(t.Context(), renewed); !refused(err, "invalid_grant") {
		t.Errorf("Renew() of tokens that were given back = %v", err)
	}
}

// A response that is not the provider's response to this attempt yields no token.
func TestForeignAnswers(t *testing.T) {
	p := idp.Start(t)
	at := open(t, p)
	begin := func() *login.Attempt {
		a, err := at.Begin(back)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	mine, others := begin(), begin()
	answer := p.Login(idp.Ada, mine.URL).Query()
	with := func(changes ...string) url.Values {
		q := url.Values{"code": answer["code"], "state": answer["state"]}
		for i := 0; i < len(changes); i += 2 {
			q.Set(changes[i], changes[i+1])
		}
		return q
	}
	for name, q := range map[string]url.Values{
		"no answer":               {},
		"no state":                {"code": answer["code"]},
		"another state":           with("state", "x"),
		"another attempt's state": with("state", others.State),
		"two states":              {"code": answer["code"], "state": {mine.State, mine.State}},
		"two codes":               {"code": {"x", answer.Get("code")}, "state": answer["state"]},
		"another issuer":          with("iss", "https://login.example.com"),
		"an issuer like ours":     with("iss", strings.TrimSuffix(p.Issuer, "/")),
		"no issuer's name":        with("iss", ""),
		"a forged refusal":        {"error": {"access_denied"}, "state": {"x"}},
	} {
		if got, err := at.Finish(t.Context(), mine, q); !errors.Is(err, login.ErrNotOurs) {
			t.Errorf("%s: %+v, %v, want ErrNotOurs", name, got, err)
		}
	}
	// An attacker's code, injected into the victim's attempt: PKCE prevents it.
	injected := with("state", others.State)
	if got, err := at.Finish(t.Context(), others, injected); err == nil {
		t.Errorf("another attempt's code: %+v", got)
	}
	if _, err := at.Finish(t.Context(), begin(), url.Values{}); !errors.Is(err, login.ErrNotOurs) {
		t.Errorf("nothing: %v", err)
	}
	third := begin()
	if _, err := at.Finish(t.Context(), third, url.Values{"state": {third.State}, "error": {"access_denied\x1b[2J"}, "error_description": {strings.Repeat("a", 5000)}}); err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 1000 {
		t.Errorf("a refusal: %v", err)
	}
}

// Even a provider that ignores PKCE, or that returns another login's tokens, cannot make
// one person someone else: the ID token has the attempt's nonce, and is bound to the
// access token.
func TestExchangedTokens(t *testing.T) {
	p := idp.Start(t)
	var change atomic.Pointer[func(map[string]any)]
	front := inFront(t, p, func(path string, m map[string]any) {
		if f := change.Load(); f != nil && strings.HasSuffix(path, "/oauth/token") {
			(*f)(m)
		}
	})
	p.Redirect(back)
	victim, err := login.Open(t.Context(), login.Options{Issuer: p.Issuer, Client: idp.Audience, HTTP: front})
	if err != nil {
		t.Fatal(err)
	}
	var theirs map[string]any
	take := func(m map[string]any) { theirs = maps.Clone(m) }
	change.Store(&take)
	other, err := victim.Begin(back)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := victim.Finish(t.Context(), other, p.Login(idp.Grace, other.URL).Query()); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(map[string]any){
		"all tokens of another login": func(m map[string]any) { clear(m); maps.Copy(m, theirs) },
		"another access token":        func(m map[string]any) { m["access_token"] = theirs["access_token"] },
		"another ID token":            func(m map[string]any) { m["id_token"] = theirs["id_token"] },
		"no ID token":                 func(m map[string]any) { delete(m, "id_token") },
		"no access token":             func(m map[string]any) { delete(m, "access_token") },
		"not a bearer token":          func(m map[string]any) { m["token_type"] = "mac" },
		"a very long token":           func(m map[string]any) { m["refresh_token"] = strings.Repeat("a", 1<<17) },
	} {
		change.Store(&f)
		a, err := victim.Begin(back)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := victim.Finish(t.Context(), a, p.Login(idp.Ada, a.URL).Query()); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A person can log in, or refuse to, on another device.
func TestDevice(t *testing.T) {
	p := idp.Start(t)
	at := open(t, p)
	for _, allow := range []bool{true, false} {
		t.Run(fmt.Sprint(allow), func(t *testing.T) {
			t.Parallel()
			shown := 0
			got, err := at.Device(t.Context(), func(prompt login.Prompt) {
				shown++
				p.Device(idp.Ada, prompt.URL, prompt.Code, allow)
			})
			switch {
			case shown != 1:
				t.Errorf("the person was told %d times", shown)
			case allow && (err != nil || whose(t, p, got.Access) != "ada@example.com"):
				t.Errorf("Device() = %v", err)
			case !allow && !refused(err, "access_denied"):
				t.Errorf("Device() = %v, want a refusal", err)
			}
		})
	}
}

// The provider's discovery document is checked before anyone is sent to its URLs.
func TestMetadata(t *testing.T) {
	p := idp.Start(t)
	for name, change := range map[string]func(map[string]any){
		"another issuer":             func(m map[string]any) { m["issuer"] = "https://login.example.com" },
		"a token endpoint over http": func(m map[string]any) { m["token_endpoint"] = "http://login.example.com/token" },
		"a page that is a script":    func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" },
		"a page that is a file":      func(m map[string]any) { m["authorization_endpoint"] = "file:///etc/passwd" },
		"a device page over http":    func(m map[string]any) { m["device_authorization_endpoint"] = "http://login.example.com/device" },
		"no token endpoint":          func(m map[string]any) { delete(m, "token_endpoint") },
	} {
		front := inFront(t, p, func(path string, m map[string]any) {
			if strings.HasSuffix(path, "/openid-configuration") {
				change(m)
			}
		})
		if _, err := login.Open(t.Context(), login.Options{Issuer: p.Issuer, Client: idp.Audience, HTTP: front}); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
	front := inFront(t, p, func(path string, m map[string]any) {
		if strings.HasSuffix(path, "/openid-configuration") {
			m["authorization_response_iss_parameter_supported"] = true
		}
	})
	at, err := login.Open(t.Context(), login.Options{Issuer: p.Issuer, Client: idp.Audience, HTTP: front})
	if err != nil {
		t.Fatal(err)
	}
	p.Redirect(back)
	a, err := at.Begin(back)
	if err != nil {
		t.Fatal(err)
	}
	answer := p.Login(idp.Ada, a.URL).Query()
	if _, err := at.Finish(t.Context(), a, answer); !errors.Is(err, login.ErrNotOurs) {
		t.Errorf("without the issuer that the provider promises: %v", err)
	}
	answer.Set("iss", p.Issuer)
	if _, err := at.Finish(t.Context(), a, answer); err != nil {
		t.Errorf("with it: %v", err)
	}
}

// Codes and tokens go only to the provider's own server, and no error contains them.
func TestRedirectedEndpoint(t *testing.T) {
	p := idp.Start(t)
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		stolen <- string(b)
	}))
	defer thief.Close()
	next := oidc.NewClient()
	front := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(r.URL.Path, "/oauth/token") {
			return next.Transport.RoundTrip(r)
		}
		w := httptest.NewRecorder()
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		return w.Result(), nil
	})}
	at, err := login.Open(t.Context(), login.Options{Issuer: p.Issuer, Client: idp.Audience, HTTP: front})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.Renew(t.Context(), login.Tokens{Refresh: "secret-of-ada"}); err == nil || strings.Contains(err.Error(), "secret-of-ada") || len(stolen) > 0 {
		t.Errorf("Renew() = %v; %d went elsewhere", err, len(stolen))
	}
}

// A client with a secret authenticates in the way that the provider supports.
func TestSecret(t *testing.T) {
	p := idp.Start(t)
	for name, x := range map[string]struct {
		methods []string
		basic   bool
	}{
		"not said":  {nil, true},
		"both":      {[]string{"client_secret_post", "client_secret_basic"}, true},
		"form only": {[]string{"client_secret_post"}, false},
	} {
		next := inFront(t, p, func(path string, m map[string]any) {
			if strings.HasSuffix(path, "/openid-configuration") {
				m["token_endpoint_auth_methods_supported"] = x.methods
			}
		})
		var form url.Values
		var basic bool
		front := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				b, _ := io.ReadAll(r.Body)
				form, _ = url.ParseQuery(string(b))
				_, secret, ok := r.BasicAuth()
				basic = ok && secret == "s%3Acret"
				w := httptest.NewRecorder()
				w.WriteHeader(http.StatusBadGateway)
				return w.Result(), nil
			}
			return next.Transport.RoundTrip(r)
		})}
		at, err := login.Open(t.Context(), login.Options{Issuer: p.Issuer, Client: idp.Audience, Secret: "s:cret", HTTP: front})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := at.Renew(t.Context(), login.Tokens{Refresh: "r"}); err == nil {
			t.Errorf("%s: Renew() = nil", name)
		}
		if basic != x.basic || (form.Get("client_secret") == "s:cret") == x.basic {
			t.Errorf("%s: by the header: %v; the form has %v", name, basic, form)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// inFront returns a client that changes the provider's responses that are objects.
func inFront(t *testing.T, p *idp.Provider, change func(path string, m map[string]any)) *http.Client {
	t.Helper()
	next := oidc.NewClient()
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		res, err := next.Transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		var m map[string]any
		if json.Unmarshal(body, &m) == nil {
			change(r.URL.Path, m)
			if body, err = json.Marshal(m); err != nil {
				return nil, err
			}
		}
		res.Body, res.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
		res.Header.Del("Content-Length")
		return res, nil
	})}
}

func refused(err error, code string) bool {
	r, ok := errors.AsType[*login.RefusedError](err)
	return ok && r.Code == code
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
