package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/quota"
)

// HTTP configures serving over HTTP instead of standard input and output.
type HTTP struct {
	Addr      string // host:port; "": not over HTTP
	Token     string // anyone who has it may use the server; "": none is configured
	Tokens    []Token
	InFile    bool          // the configuration file has tokens or keys in it
	TLSCert   string        // absolute; PEM, with the chain; "": no TLS
	TLSKey    string        // absolute; "": no TLS
	PublicURL string        // how clients reach the server from elsewhere; may be ""
	Issuer    string        // the authorization server that issues tokens; may be ""
	Drain     time.Duration // how long calls may go on when the server is to end
	Calls     int           // that are worked on at the same time
	CallsOf   quota.Limits  // of these
	RunsOf    quota.Limits  // programs that run
	WaitingOf quota.Limits  // calls that wait for an answer
	MemoryOf  quota.Limits  // bytes that the programs may take that run
	OIDC      OIDC
}

// OIDC says which tokens of an identity provider are accepted.
type OIDC struct {
	Issuer   string   // "": none
	Audience string   // what a token must be for; "": the URL of this server
	Person   string   // the claim that names people
	Groups   string   // the claim with their groups
	Allow    []string // the groups that may use the server; empty: everybody
	Scopes   []string // that clients ask for
	People   int      // among how many people the room for questions is divided
	Client   string   // the name under which the provider knows this program; "": nobody logs in with it
	Secret   string   // of Client, for the approvals page; "": none
}

const oidcSection = "http.oidc"

// A Token is one person's token.
type Token struct {
	Name, Token string
	Groups      []string
}

const tokensKey = "http.tokens"

// httpKeys returns the scalar keys of the section.
func httpKeys() []key {
	return []key{
		checked("http.addr", "want host:port, such as 127.0.0.1:8080, localhost:0 or 0.0.0.0:8443", listenAddr, func(c *Config) *string { return &c.HTTP.Addr }),
		secret(checked("http.token", wantToken, token, func(c *Config) *string { return &c.HTTP.Token })),
		path("http.tls_cert", func(c *Config) *string { return &c.HTTP.TLSCert }),
		path("http.tls_key", func(c *Config) *string { return &c.HTTP.TLSKey }),
		checked("http.public_url", "want a URL such as https://packs.example.com", publicURL, func(c *Config) *string { return &c.HTTP.PublicURL }),
		checked("http.issuer", "want the URL of an authorization server, such as https://login.example.com", issuer, func(c *Config) *string { return &c.HTTP.Issuer }),
		count("http.calls", 1, 100_000, func(c *Config) *int { return &c.HTTP.Calls }),
		each("http.calls_each", 1, 1024, func(c *Config) *int64 { return &c.HTTP.CallsOf.Each }),
		ofGroups("http.calls_group", aNumber, func(c *Config) *quota.Limits { return &c.HTTP.CallsOf }),
		orNone(each("http.runs_each", 1, 1024, func(c *Config) *int64 { return &c.HTTP.RunsOf.Each }), func(c *Config) *int64 { return &c.HTTP.RunsOf.Each }),
		ofGroups("http.runs_group", aNumber, func(c *Config) *quota.Limits { return &c.HTTP.RunsOf }),
		orNone(each("http.questions_each", 1, 2048, func(c *Config) *int64 { return &c.HTTP.WaitingOf.Each }), func(c *Config) *int64 { return &c.HTTP.WaitingOf.Each }),
		ofGroups("http.questions_group", aNumber, func(c *Config) *quota.Limits { return &c.HTTP.WaitingOf }),
		orNone(size("http.memory_each", 16*mib, 1024*gib, func(c *Config) *int64 { return &c.HTTP.MemoryOf.Each }), func(c *Config) *int64 { return &c.HTTP.MemoryOf.Each }),
		ofGroups("http.memory_group", aSize, func(c *Config) *quota.Limits { return &c.HTTP.MemoryOf }),
		duration("http.drain", 0, time.Hour, func(c *Config) *time.Duration { return &c.HTTP.Drain }),
		checked("http.oidc.issuer", "want the URL of an identity provider, such as https://login.example.com", issuer, func(c *Config) *string { return &c.HTTP.OIDC.Issuer }),
		checked("http.oidc.audience", "want text without spaces", audience, func(c *Config) *string { return &c.HTTP.OIDC.Audience }),
		text("http.oidc.person", func(c *Config) *string { return &c.HTTP.OIDC.Person }),
		text("http.oidc.groups", func(c *Config) *string { return &c.HTTP.OIDC.Groups }),
		words("http.oidc.allow", "want the names of groups", func(c *Config) *[]string { return &c.HTTP.OIDC.Allow }),
		words("http.oidc.scopes", "want the names of scopes", func(c *Config) *[]string { return &c.HTTP.OIDC.Scopes }),
		checked("http.oidc.client", "want text without spaces", audience, func(c *Config) *string { return &c.HTTP.OIDC.Client }),
		secret(checked("http.oidc.client_secret", "want text without spaces", audience, func(c *Config) *string { return &c.HTTP.OIDC.Secret })),
		count("http.oidc.people", 1, 10_000, func(c *Config) *int { return &c.HTTP.OIDC.People }),
	}
}

// checked returns a key for text that check accepts and converts; empty is the
// default.
func checked(name, want string, check func(string) (string, bool), field func(*Config) *string) key {
	return key{path: name, want: want, tags: []string{node.TagString, node.TagInt}, set: func(c *Config, s string, _ places.Base) string {
		if s == "" {
			*field(c) = ""
			return ""
		}
		v, ok := check(s)
		if !ok {
			return want
		}
		*field(c) = v
		return ""
	}}
}

// words returns a key for a list of names, which may be empty.
func words(name, want string, field func(*Config) *[]string) key {
	return key{path: name, want: want, list: ",", none: true, clear: func(c *Config) { *field(c) = nil }, set: func(c *Config, s string, _ places.Base) string {
		if s == "" || len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r == 0x7f }) {
			return "want a name of at most 256 bytes, without spaces, quotes and backslashes"
		}
		if slices.Contains(*field(c), s) {
			return "name it once"
		}
		*field(c) = append(*field(c), s)
		return ""
	}}
}

// secret keeps a key's value out of messages.
func secret(k key) key {
	k.secret = true
	return k
}

// listenAddr checks an address to listen on. Without a host it is this machine
// only: a wider address must be given explicitly.
func listenAddr(s string) (string, bool) {
	if isPort(s) {
		s = ":" + s
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || !isPort(port) || strings.ContainsAny(host, "/@ \t") {
		return "", false
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), true
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == s
}

const (
	minToken  = 16
	wantToken = "want at least 16 letters, digits or signs, without spaces, in quotes; a random one is best"
)

// token accepts text that a header can carry and that is hard to guess.
func token(s string) (string, bool) {
	outside := func(r rune) bool { return r <= ' ' || r > '~' }
	return s, len(s) >= minToken && len(s) <= 4096 && !strings.ContainsFunc(s, outside)
}

func publicURL(s string) (string, bool) {
	u, err := url.Parse(s)
	ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
	return strings.TrimRight(s, "/"), ok
}

func issuer(s string) (string, bool) {
	_, ok := publicURL(s)
	return s, ok
}

func audience(s string) (string, bool) { return s, !strings.ContainsFunc(s, unicode.IsSpace) }

// tokens reads each person's token. No message shows one.
func (f *fileReader) tokens(v *yaml.Node, path string) {
	if node.IsNull(v) {
		return
	}
	for i, item := range f.Items(v, path) {
		before := len(f.problems)
		t := f.personToken(item, fmt.Sprintf("%s[%d]", path, i))
		if len(f.problems) == before {
			f.cfg.HTTP.Tokens = append(f.cfg.HTTP.Tokens, t)
		}
	}
}

func (f *fileReader) personToken(item *yaml.Node, path string) Token {
	var t Token
	if node.Value(item).Kind != yaml.MappingNode {
		f.Problem(node.At(item), path, "want a mapping, such as {name: ada, token: …}")
		return t
	}
	before := len(f.problems)
	f.Mapping(item, path, func(k, v *yaml.Node, path string) {
		n := node.Value(v)
		isText := n.Kind == yaml.ScalarNode && (n.ShortTag() == node.TagString || n.ShortTag() == node.TagInt)
		switch node.Value(k).Value {
		case "name":
			switch t.Name = n.Value; {
			case !isText || !personName(t.Name):
				f.Problem(node.At(v), path, "want a name of at most 64 letters, digits, spaces, or any of . _ @ -")
			case strings.EqualFold(t.Name, string(approvers.Operator)), strings.EqualFold(t.Name, string(approvers.Asker)):
				f.Problem(node.At(v), path, fmt.Sprintf("is %q, which means somebody else in approvers and in the audit log; choose another name", t.Name))
			case approvers.IsProvided(t.Name):
				f.Problem(node.At(v), path, "has the form of a name of an identity provider's person; leave out the digits at its end")
			}
		case "token":
			var ok bool
			if t.Token, ok = token(n.Value); !isText || !ok {
				f.Problem(node.At(v), path, wantToken)
			}
		case "groups":
			f.Words(v, path, &t.Groups, groupName)
		default:
			f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(node.Value(k).Value, []string{"name", "token", "groups"}, nil))
		}
	})
	same := func(have Token) bool { return have.Name == t.Name || have.Token == t.Token }
	switch {
	case len(f.problems) > before:
	case t.Name == "" || t.Token == "":
		f.Problem(node.At(item), path, "needs a name and a token")
	case slices.ContainsFunc(f.cfg.HTTP.Tokens, same):
		f.Problem(node.At(item), path, "has the name or the token of another one; each person has their own")
	}
	return t
}

// personName reports whether a name can be shown unchanged everywhere.
func personName(s string) bool {
	outside := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(" ._@-", r))
	}
	return s != "" && s == strings.TrimSpace(s) && len(s) <= 64 && !strings.ContainsFunc(s, outside)
}

// httpTogether checks that the section's values fit together.
func (l *loader) httpTogether() {
	h := &l.cfg.HTTP
	if slices.ContainsFunc(h.Tokens, func(t Token) bool { return t.Token == h.Token }) {
		l.add(l.origin["http.token"], "http.token", "is the token of a person in http.tokens too; each needs another one")
	}
	switch o := &h.OIDC; {
	case o.Issuer == "":
	case o.Audience == "" && h.PublicURL == "":
		l.add(l.origin["http.oidc.issuer"], "http.oidc.issuer", "needs http.public_url, or http.oidc.audience: what the provider's tokens for this server are for")
	case h.Issuer != "" && h.Issuer != o.Issuer:
		l.add(l.origin["http.issuer"], "http.issuer", "names another issuer than http.oidc.issuer; leave it out")
	}
}

// warnReadable warns if others can read the tokens and keys in a file, and records
// that the file has some.
func (l *loader) warnReadable(path string) {
	l.cfg.HTTP.InFile = l.cfg.HTTP.Token != "" || l.cfg.HTTP.OIDC.Secret != "" || len(l.cfg.HTTP.Tokens) > 0 || l.cfg.Store.Key != "" || l.cfg.Store.URL != ""
	if !l.cfg.HTTP.InFile || l.cwd.GOOS == "windows" {
		return
	}
	if fi, err := os.Stat(path); err == nil && fi.Mode().Perm()&0o044 != 0 {
		l.warn("%s has tokens or keys in it and other users may read it (mode %04o); chmod 600 makes it yours alone", path, fi.Mode().Perm())
	}
}
