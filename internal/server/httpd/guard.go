package httpd

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A guard decides who may use the server, and refuses others.
type guard struct {
	*core
	callers []*caller // those with a fixed token
	people  *people   // nil: nobody has another
	public  *url.URL  // nil: none
	issuer  string
	scopes  []string // that clients ask the issuer for
	spare   sparing  // bounds the log lines about requests without a token
}

// foreign says why a request may come from a foreign web page; empty if it does
// not. The owner of another host name can make it resolve to this machine, so
// only our own names are accepted; an address cannot be redirected.
func (g *guard) foreign(r *http.Request) string {
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
func (g *guard) ourHost(r *http.Request) bool {
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
func (g *guard) ourOrigin(origin string) bool {
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

// errUnknownToken means that its token is nobody's.
var errUnknownToken = errors.New("its token is not one of this server")

// authenticate returns the caller whose token the request has, the request with what is
// known of the token, and what to do when it ends. It
// accepts a token only in the header: a URL ends up in logs and histories.
func (g *guard) authenticate(r *http.Request) (_ *caller, _ *http.Request, leave func(), err error) {
	token, ok := bearer(r)
	if !ok {
		return nil, nil, nil, errNoToken
	}
	if c := g.holder(token); c != nil {
		return c, r, func() {}, nil
	}
	if g.people == nil || token == "" {
		return nil, nil, nil, errUnknownToken
	}
	c, until, err := g.people.enter(r.Context(), token)
	if err != nil {
		return nil, nil, nil, err
	}
	return c, withEnd(r, until), c.leave, nil
}

// holder returns the caller with a fixed token, or nil.
func (g *guard) holder(token string) *caller {
	// Compare hashes, so that timing does not reveal even a token's length, and
	// compare with all callers.
	sum := sha256.Sum256([]byte(token))
	var found *caller
	for _, c := range g.callers {
		if subtle.ConstantTimeCompare(sum[:], c.token[:]) == 1 {
			found = c
		}
	}
	return found
}

func bearer(r *http.Request) (token string, ok bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// unauthorized refuses a request that is nobody's. It tells the client that a token is
// needed and, with an issuer, where to get one.
func (g *guard) unauthorized(w http.ResponseWriter, r *http.Request, why error) {
	if r.Header.Get("Authorization") != "" {
		g.refused(safetext.Line(why.Error()), r.RemoteAddr)
	}
	switch {
	case errors.Is(why, oidc.ErrAway), errors.Is(why, errTooManyPeople):
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "whose the token is cannot be found out now; try again soon")
		return
	case errors.Is(why, oidc.ErrForbidden):
		refuse(w, http.StatusForbidden, "you are in none of the groups that may use this server; ask who runs it")
		return
	}
	challenge := `Bearer realm="packs-mcp"`
	if r.Header.Get("Authorization") != "" {
		challenge += `, error="invalid_token"`
	}
	if g.issuer != "" {
		challenge += fmt.Sprintf(`, resource_metadata="%s%s%s"`, g.url(r), pathMetadata, pathMCP)
	}
	if len(g.scopes) > 0 {
		challenge += fmt.Sprintf(`, scope="%s"`, strings.Join(g.scopes, " "))
	}
	w.Header().Set("WWW-Authenticate", challenge)
	refuse(w, http.StatusUnauthorized, "a token is required: Authorization: Bearer TOKEN")
}

// doubled returns the name of a header that occurs more than once but must not,
// or "". Of two values, a proxy may have read the other one.
func doubled(r *http.Request) string {
	for name, values := range r.Header {
		single := name == "Content-Type" || name == "Content-Encoding" || strings.HasPrefix(name, "Mcp-")
		if single && len(values) > 1 {
			return name
		}
	}
	return ""
}

// refused logs that a client without a token was refused.
func (g *guard) refused(why, from string) {
	if unsaid, ok := g.spare.allow(time.Now()); ok {
		g.logger.Warn("a request was refused", "reason", why, "from", from, "unsaid", unsaid)
	}
}

// url returns the URL by which the client reaches the server.
func (g *guard) url(r *http.Request) string {
	switch {
	case g.public != nil:
		return g.public.String()
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host // Host was checked
}

// prefix returns the path prefix of the public URL that a proxy strips; empty
// for a request that did not use the public URL.
func (g *guard) prefix(r *http.Request) string {
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

// metadata tells a client where to get a token.
func (g *guard) metadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	w.Header().Set("Connection", "close")
	about := map[string]any{
		"resource":                 g.url(r) + pathMCP,
		"authorization_servers":    []string{g.issuer},
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "packs-mcp",
	}
	if len(g.scopes) > 0 {
		about["scopes_supported"] = g.scopes
	}
	writeJSON(w, http.StatusOK, about)
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
