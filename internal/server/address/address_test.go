package address

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

func TestParseURI(t *testing.T) {
	for _, tt := range []struct{ uri, scheme, path, again string }{
		{"skill://a", "skill", "a", ""},
		{"skill://a/SKILL.md", "skill", "a/SKILL.md", ""},
		{"pack://a/b%20c", "pack", "a/b c", ""},
		{"pack://a/b c%C3%A9é", "", "", ""},
		{"pack://a/%c3%a9", "pack", "a/é", "pack://a/%C3%A9"},
		{"pack://a/é", "pack", "a/é", "pack://a/%C3%A9"},
		{"pack://a/%41%2d%7E", "pack", "a/A-~", "pack://a/A-~"},
		{"pack://a/%2e%2e%2e", "pack", "a/...", "pack://a/..."},
		{"pack://a/%252e%252e", "pack", "a/%2e%2e", ""},
		{"pack://a/%ff", "pack", "a/\xff", "pack://a/%FF"},
		{"pack://a/%E2%80%AEx", "pack", "a/\u202ex", ""},
		{"workspace://00ff/x", "workspace", "00ff/x", ""},
		{"pack://a+b@c/!$&'()*,;=", "pack", "a+b@c/!$&'()*,;=", "pack://a%2Bb%40c/%21%24%26%27%28%29%2A%2C%3B%3D"},
	} {
		u, ok := Parse(tt.uri)
		if tt.scheme == "" {
			if ok {
				t.Errorf("parseURI(%q) = %+v, want it refused", tt.uri, u)
			}
			continue
		}
		if !ok || u.Scheme != tt.scheme || u.Path != tt.path {
			t.Errorf("parseURI(%q) = %+v, %v, want %s and %q", tt.uri, u, ok, tt.scheme, tt.path)
		}
		if tt.again == "" {
			tt.again = tt.uri
		}
		if got := u.String(); got != tt.again {
			t.Errorf("parseURI(%q).String() = %q, want %q", tt.uri, got, tt.again)
		}
	}
}

// Every path that packfs accepts has a URI of characters that every URI reader
// accepts, and parsing the URI returns the path.
func FuzzURI(f *testing.F) {
	for _, uri := range servertest.HostileURIs("00ff") {
		f.Add(uri, "docs/"+uri)
	}
	f.Fuzz(func(t *testing.T, uri, path string) {
		if u, ok := Parse(uri); ok {
			clean, err := packfs.Clean(u.Path)
			if err != nil || clean != u.Path || strings.HasPrefix(clean, "..") && (len(clean) == 2 || clean[2] == '/') {
				t.Errorf("parseURI(%q) = %q, which packfs.Clean makes %q, %v", uri, u.Path, clean, err)
			}
			again, ok := Parse(u.String())
			if !ok || again != u {
				t.Errorf("parseURI(%q) = %+v, %v, want %+v", u.String(), again, ok, u)
			}
		}
		clean, err := packfs.Clean(path)
		if err != nil || clean != path || clean == "." || len(path) > 1000 {
			return
		}
		u := URI{SchemePack, path}
		got, ok := Parse(u.String())
		if !ok || got != u {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", u.String(), got, ok, u)
		}
		if text := u.String(); !utf8.ValidString(text) || strings.ContainsAny(text, " ?#\\") {
			t.Errorf("String() = %q", text)
		}
	})
}
