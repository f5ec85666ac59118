package oci

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

var testTime = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

func logins(t *testing.T, files ...string) *web.Logins {
	t.Helper()
	var names []string
	for i, content := range files {
		name := filepath.Join(t.TempDir(), string(rune('a'+i)))
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	l, err := web.ReadLogins(append(names, filepath.Join(t.TempDir(), "none"))...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// loginsOf returns the function that [web.Access] calls to read these files.
func loginsOf(t *testing.T, files ...string) func() (*web.Logins, error) {
	l := logins(t, files...)
	return func() (*web.Logins, error) { return l, nil }
}

// A password goes only to its own registry.
func TestWhoAsks(t *testing.T) {
	pack := upstream.TarGz(t, upstream.Files{"SKILL.md": sourcestest.Document})
	for name, tt := range map[string]struct {
		set  func(g, other *testRegistry) *web.Logins
		want string // of the error; "" for none
	}{
		"a token": {func(g, _ *testRegistry) *web.Logins { return logins(t, authsFor(g.host(), "user:secret")) }, ""},
		"basic": {func(g, _ *testRegistry) *web.Logins {
			g.basic = true
			return logins(t, authsFor(g.host(), "user:secret"))
		}, ""},
		"a refresh token": {func(g, _ *testRegistry) *web.Logins {
			return logins(t, `{"auths":{"`+g.host()+`":{"identitytoken":"user:secret"}}}`)
		}, ""},
		"nobody":                  {func(*testRegistry, *testRegistry) *web.Logins { return nil }, "wants to know who asks"},
		"basic, nobody":           {func(g, _ *testRegistry) *web.Logins { g.basic = true; return nil }, "wants to know who asks"},
		"another host's password": {func(_, other *testRegistry) *web.Logins { return logins(t, authsFor(other.host(), "user:secret")) }, "wants to know who asks"},
		"a helper":                {func(*testRegistry, *testRegistry) *web.Logins { return logins(t, `{"credsStore":"desktop"}`) }, "docker-credential-desktop keeps the password: packs-mcp starts no such program"},
		"a realm elsewhere": {func(g, other *testRegistry) *web.Logins {
			g.realm = other.URL + "/token"
			return logins(t, authsFor(g.host(), "user:secret"))
		}, "a password is sent to no other host than its own"},
		"a realm elsewhere for a refresh token": {func(g, other *testRegistry) *web.Logins {
			g.realm = other.URL + "/token"
			return logins(t, `{"auths":{"`+g.host()+`":{"identitytoken":"user:secret"}}}`)
		}, "sent to no other host than its own"},
	} {
		t.Run(name, func(t *testing.T) {
			g, other := newTestRegistry(t), newTestRegistry(t)
			g.login, other.login = "user:secret", "user:secret"
			g.tag(t, "v1", map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": ArtifactType, "layers": []any{with(g.put(pack), "mediaType", layerType)}})
			w := sourcestest.Here()
			l := tt.set(g, other)
			w.Logins = func() (*web.Logins, error) { return l, nil }
			w.Credentials = func(string) (string, string) { return "not", "this" }
			s, err := Open(t.Context(), w, sourcestest.Parse(t, g.ref(":v1")))
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
