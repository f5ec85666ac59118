// Package guard decides who may use a server over HTTP: it refuses requests from
// foreign web pages, finds out whose a token is, and tells a client without one where
// to get it. It reads headers only, never a body.
//
// It does not know what a person may do, and keeps nothing of theirs.
package guard

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd/reply"
)

// The paths of the metadata that tells clients where to get a token (RFC 9728).
const (
	PathMetadata    = "/.well-known/oauth-protected-resource"
	PathMetadataMCP = PathMetadata + "/mcp"
)

// A Credential lets its holder use the server over HTTP.
type Credential struct {
	// Token is the secret that the holder sends. It is never logged or shown.
	Token string
	// Person is the holder's name in questions and in the audit log; empty for
	// nobody in particular.
	Person string
	// Groups are the holder's.
	Groups []string
}

// Options configure a [Guard]. Credentials or Tokens is required.
type Options struct {
	Credentials []Credential
	// Tokens reads the tokens that are not in Credentials; nil: there are no others.
	Tokens *oidc.Verifier
	// Local says that no other machine can reach the server: a token without a
	// name is then the user's own.
	Local bool
	// PublicURL is the URL by which clients reach the server if not by an
	// address of this machine, as in "https://packs.example.com".
	PublicURL string
	// Issuer is the authorization server from which clients are told to get a
	// token; empty names none.
	Issuer string
	// Scopes are what clients are told to ask the issuer for.
	Scopes []string
	// Client is the name under which the issuer knows the program with which people
	// answer; empty: there is none.
	Client string
	Logger *slog.Logger
}

// A Person is who a request comes from.
type Person struct {
	// Key is the same for all requests of one person, and for no one else's.
	Key string
	// Name is the person's in questions and in the audit log; empty for nobody in
	// particular.
	Name string
	// Groups are the person's, as the token of this request says.
	Groups []string
	Origin call.Origin
	// Until is when the person's token ends; zero: it does not.
	Until time.Time
}

// A Guard decides who may use the server, and refuses others. It is safe for
// concurrent use. Make one with [New].
type Guard struct {
	fixed  []holder
	tokens *oidc.Verifier // nil: nobody has another
	public *url.URL       // nil: none
	issuer string
	scopes []string // that clients ask the issuer for
	client string
	logger *slog.Logger
	spare  sparing // bounds the log lines about requests without a token
}

// A holder is somebody with a fixed token.
type holder struct {
	Person
	token [sha256.Size]byte // the token's digest
}

// New returns a guard.
func New(o Options) (*Guard, error) {
	if len(o.Credentials) == 0 && o.Tokens == nil {
		return nil, errors.New("a token is required")
	}
	g := &Guard{tokens: o.Tokens, issuer: o.Issuer, scopes: o.Scopes, client: o.Client, logger: o.Logger}
	if o.PublicURL != "" {
		u, err := parsePublicURL(o.PublicURL)
		if err != nil {
			return nil, err
		}
		g.public = u
	}
	seen := make(map[[sha256.Size]byte]bool)
	for _, of := range o.Credentials {
		sum := sha256.Sum256([]byte(of.Token))
		switch {
		case of.Token == "":
			return nil, errors.New("a token is empty")
		case seen[sum]:
			return nil, errors.New("two people have the same token")
		}
		seen[sum] = true
		one := holder{Person: Person{Key: "token " + hex.EncodeToString(sum[:]), Name: of.Person, Groups: of.Groups}, token: sum}
		if o.Local && (g.public == nil || isLoopback(g.public.Hostname())) {
			one.Origin = call.OriginMachine
		}
		g.fixed = append(g.fixed, one)
	}
	return g, nil
}

// Fixed returns who has a fixed token, in the order of the options.
func (g *Guard) Fixed() []Person {
	all := make([]Person, len(g.fixed))
	for i, one := range g.fixed {
		all[i] = one.Person
	}
	return all
}

// Foreign says why a request may come from a foreign web page; empty if it does
// not. The owner of another host name can make it resolve to this machine, so
// only our own names are accepted; an address cannot be redirected.
func (g *Guard) Foreign(r *http.Request) string {
	if !g.ourHost(r) {
		return "the Host header is not a name or address of this server; http.public_url sets the name it is reached by"
	}
	switch origins := r.Header.Values("Origin"); {
	case len(origins) == 0:
	case len(origins) > 1 || !g.ourOrigin(origins[0]):
		return "the Origin header names a page that may not use this server"
	}
	return ""
}

// ourHost reports whether Host is a loopback name or address, the address that
// the request arrived on, or the host of the public URL.
func (g *Guard) ourHost(r *http.Request) bool {
	host := hostName(r.Host)
	if isLoopback(host) || g.public != nil && strings.EqualFold(host, g.public.Hostname()) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap().WithZone("") == ip.Unmap().WithZone("")
}

// hostName returns a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		return strings.TrimSuffix(inner, "]")
	}
	return host
}

// ourOrigin reports whether a page of this origin may use the server: a page
// from this machine or from the public URL.
func (g *Guard) ourOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Scheme+"://"+u.Host != origin {
		return false // "null", or something that no browser sends
	}
	if isLoopback(u.Hostname()) {
		return true
	}
	return g.public != nil && u.Scheme == g.public.Scheme && strings.EqualFold(u.Hostname(), g.public.Hostname()) && portOf(u) == portOf(g.public)
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// isLoopback reports whether a host name always means this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// errNoToken means that a request has no token.
var errNoToken = errors.New("it has no token")

// errUnknownToken means that its token belongs to nobody.
var errUnknownToken = errors.New("its token is not one of this server")

// errProxied means that a proxy passed on a request with a token that, as far as the
// server knows, only this machine's user can send.
var errProxied = errors.New("a proxy passed it on, and its token has no name; http.public_url is not set, so the server takes this token for the user of this machine")

// proxied reports whether a proxy says that it passed a request on.
func proxied(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// Authenticate returns the person whose token the request has. The error says why
// there is none, for a log; it may match [oidc.ErrAway] or [oidc.ErrForbidden].
// Authenticate accepts a token only in the header: a URL ends up in logs and
// histories.
func (g *Guard) Authenticate(r *http.Request) (Person, error) {
	token, ok := bearer(r)
	if !ok {
		return Person{}, errNoToken
	}
	if p, ok := g.holder(token); ok {
		if p.Name == "" && p.Origin == call.OriginMachine && proxied(r) {
			return Person{}, errProxied
		}
		return p, nil
	}
	if g.tokens == nil || token == "" {
		return Person{}, errUnknownToken
	}
	id, err := g.tokens.Verify(r.Context(), token)
	if err != nil {
		return Person{}, err
	}
	return Person{Key: id.Key, Name: id.Person, Groups: id.Groups, Until: id.Until}, nil
}

// holder returns who has a fixed token.
func (g *Guard) holder(token string) (p Person, ok bool) {
	// Compare hashes, so that timing does not reveal even a token's length, and
	// compare with all of them.
	sum := sha256.Sum256([]byte(token))
	for _, one := range g.fixed {
		if subtle.ConstantTimeCompare(sum[:], one.token[:]) == 1 {
			p, ok = one.Person, true
		}
	}
	return p, ok
}

func bearer(r *http.Request) (token string, ok bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// Unauthorized refuses a request without a valid token. It tells the client that a
// token is needed and, with an issuer, where to get one.
func (g *Guard) Unauthorized(w http.ResponseWriter, r *http.Request, why error) {
	if r.Header.Get("Authorization") != "" {
		g.Refused(safetext.Line(why.Error()), r.RemoteAddr)
	}
	switch {
	case errors.Is(why, oidc.ErrAway):
		w.Header().Set("Retry-After", "10")
		reply.Refuse(w, http.StatusServiceUnavailable, "whose the token is cannot be found out now; try again soon")
		return
	case errors.Is(why, oidc.ErrForbidden):
		reply.Refuse(w, http.StatusForbidden, "you are in none of the groups that may use this server; ask who runs it")
		return
	case errors.Is(why, errProxied):
		reply.Refuse(w, http.StatusForbidden, "a proxy passed this request on, so others may reach the server: set http.public_url, or give each person a token of http.tokens")
		return
	}
	challenge := `Bearer realm="packs-mcp"`
	if r.Header.Get("Authorization") != "" {
		challenge += `, error="invalid_token"`
	}
	if g.issuer != "" {
		challenge += fmt.Sprintf(`, resource_metadata="%s%s"`, g.URL(r), PathMetadataMCP)
	}
	if len(g.scopes) > 0 {
		challenge += fmt.Sprintf(`, scope="%s"`, strings.Join(g.scopes, " "))
	}
	w.Header().Set("WWW-Authenticate", challenge)
	reply.Refuse(w, http.StatusUnauthorized, "a token is required: Authorization: Bearer TOKEN")
}

// Refused logs that a client without a token was refused.
func (g *Guard) Refused(why, from string) {
	if unsaid, ok := g.spare.allow(time.Now()); ok {
		g.logger.Warn("a request was refused", "reason", why, "from", from, "unsaid", unsaid)
	}
}

// URL returns the URL by which the client reaches the server.
func (g *Guard) URL(r *http.Request) string {
	switch {
	case g.public != nil:
		return g.public.String()
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host // Host was checked
}

// Prefix returns the path prefix of the public URL that a proxy strips; empty
// for a request that did not use the public URL.
func (g *Guard) Prefix(r *http.Request) string {
	if g.public == nil || !strings.EqualFold(hostName(r.Host), g.public.Hostname()) {
		return ""
	}
	return g.public.EscapedPath()
}

// parsePublicURL parses the URL by which clients reach a server: http or https,
// a host, and optionally a path that a proxy strips.
func parsePublicURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return nil, fmt.Errorf("the public URL %q is not a URL such as https://packs.example.com", text)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// HasIssuer reports whether there is a server that issues tokens, which [Guard.Metadata]
// names.
func (g *Guard) HasIssuer() bool { return g.issuer != "" }

// Metadata tells a client where to get a token.
func (g *Guard) Metadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		reply.NotAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Connection", "close")
	about := map[string]any{
		"resource":                 g.URL(r) + "/mcp",
		"authorization_servers":    []string{g.issuer},
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "packs-mcp",
	}
	if len(g.scopes) > 0 {
		about["scopes_supported"] = g.scopes
	}
	if g.client != "" {
		about["packs_mcp_client_id"] = g.client
	}
	reply.JSON(w, http.StatusOK, about)
}

// A sparing bounds the log lines that anyone can cause. The zero value is ready.
type sparing struct {
	mu     sync.Mutex
	since  time.Time
	said   int
	unsaid int
}

const (
	// At most sparingLines are logged in each sparingTime.
	sparingTime  = time.Minute
	sparingLines = 10
)

// allow reports whether one more line may be logged now, and how many were left
// out since the last one.
func (s *sparing) allow(now time.Time) (unsaid int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) >= sparingTime {
		s.since, s.said = now, 0
	}
	if s.said >= sparingLines {
		s.unsaid++
		return 0, false
	}
	s.said++
	unsaid, s.unsaid = s.unsaid, 0
	return unsaid, true
}
