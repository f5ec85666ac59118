package sources

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
)

var testTime = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

func logins(t *testing.T, files ...string) *Logins {
	t.Helper()
	var names []string
	for i, content := range files {
		name := filepath.Join(t.TempDir(), string(rune('a'+i)))
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	l, err := ReadLogins(append(names, filepath.Join(t.TempDir(), "none"))...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// loginsOf is what a [Web] calls for these.
func loginsOf(t *testing.T, files ...string) func() (*Logins, error) {
	l := logins(t, files...)
	return func() (*Logins, error) { return l, nil }
}

func TestLogins(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	l := logins(t,
		`{"auths":{"https://index.docker.io/v1/":{"auth":"`+b64("hub:a:b")+`"},"quay.io/org":{"auth":"`+b64("org:x")+`"},"QUAY.io":{"auth":"`+b64("all:x")+`"},"ghcr.io":{}},"credsStore":"desktop"}`,
		`{"auths":{"quay.io":{"auth":"`+b64("later:x")+`"},"azure.example":{"auth":"`+b64("0000:")+`","identitytoken":"t"}},"credHelpers":{"ecr.example":"ecr-login"}}`)
	for _, tt := range []struct {
		host, repository string
		want             auth.Credential
	}{
		{dockerHub, "library/x", auth.Credential{Username: "hub", Password: "a:b"}},
		{"quay.io", "org/x/y", auth.Credential{Username: "org", Password: "x"}},
		{"quay.io", "organisation/x", auth.Credential{Username: "all", Password: "x"}},
		{"azure.example", "x", auth.Credential{Username: "0000", RefreshToken: "t"}},
		{"ghcr.io", "x", auth.EmptyCredential},
		{"evil.quay.io", "org/x", auth.EmptyCredential},
		{"quay.io:8443", "org/x", auth.EmptyCredential},
	} {
		if got := l.of(tt.host, tt.repository); got != tt.want {
			t.Errorf("of(%q, %q) = %+v, want %+v", tt.host, tt.repository, got, tt.want)
		}
	}
	for host, want := range map[string]string{"ghcr.io": "docker-credential-desktop", "ecr.example": "docker-credential-ecr-login"} {
		if got := l.helper(host); got != want {
			t.Errorf("helper(%q) = %q, want %q", host, got, want)
		}
	}
	for content, want := range map[string]string{`{"auths":{"x":{"auth":"c2VjcmV0"}}}`: "is not base64", `{"auths": secret`: "not JSON", strings.Repeat(" ", maxLogins+1): "more than"} {
		name := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLogins(name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40q: %v, want %q", content, err, want)
		}
	}
}

// A password goes to the registry that it is for, and nowhere else.
func TestWhoAsks(t *testing.T) {
	pack := tgz(t, map[string]string{"SKILL.md": document})
	for name, tt := range map[string]struct {
		set  func(g, other *testRegistry) *Logins
		want string // of the error; "" for none
	}{
		"a token": {func(g, _ *testRegistry) *Logins { return logins(t, authsFor(g.host(), "user:secret")) }, ""},
		"basic":   {func(g, _ *testRegistry) *Logins { g.basic = true; return logins(t, authsFor(g.host(), "user:secret")) }, ""},
		"a refresh token": {func(g, _ *testRegistry) *Logins {
			return logins(t, `{"auths":{"`+g.host()+`":{"identitytoken":"user:secret"}}}`)
		}, ""},
		"nobody":                  {func(*testRegistry, *testRegistry) *Logins { return nil }, "wants to know who asks"},
		"basic, nobody":           {func(g, _ *testRegistry) *Logins { g.basic = true; return nil }, "wants to know who asks"},
		"another host's password": {func(_, other *testRegistry) *Logins { return logins(t, authsFor(other.host(), "user:secret")) }, "wants to know who asks"},
		"a helper":                {func(*testRegistry, *testRegistry) *Logins { return logins(t, `{"credsStore":"desktop"}`) }, "docker-credential-desktop keeps the password: packs-mcp starts no such program"},
		"a realm elsewhere": {func(g, other *testRegistry) *Logins {
			g.realm = other.URL + "/token"
			return logins(t, authsFor(g.host(), "user:secret"))
		}, "a password is sent to no other host than its own"},
		"a realm elsewhere for a refresh token": {func(g, other *testRegistry) *Logins {
			g.realm = other.URL + "/token"
			return logins(t, `{"auths":{"`+g.host()+`":{"identitytoken":"user:secret"}}}`)
		}, "sent to no other host than its own"},
	} {
		t.Run(name, func(t *testing.T) {
			g, other := newTestRegistry(t), newTestRegistry(t)
			g.login, other.login = "user:secret", "user:secret"
			g.tag(t, "v1", map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": ArtifactType, "layers": []any{with(g.put(pack), "mediaType", layerType)}})
			w := here()
			l := tt.set(g, other)
			w.Logins = func() (*Logins, error) { return l, nil }
			w.Credentials = func(string) (string, string) { return "not", "this" }
			s, err := OpenOCI(t.Context(), w, parse(t, g.ref(":v1")))
			if err == nil {
				defer s.Close()
			}
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if len(other.heard) > 0 {
				t.Errorf("another host heard %q", other.heard)
			}
		})
	}
}

func authsFor(host, login string) string {
	return `{"auths":{"` + host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte(login)) + `"}}}`
}
