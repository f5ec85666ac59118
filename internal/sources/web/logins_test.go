package web

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"
)

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

func TestLogins(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	l := logins(t,
		`{"auths":{"https://index.docker.io/v1/":{"auth":"`+b64("hub:a:b")+`"},"quay.io/org":{"auth":"`+b64("org:x")+`"},"QUAY.io":{"auth":"`+b64("all:x")+`"},"ghcr.io":{}},"credsStore":"desktop"}`,
		`{"auths":{"quay.io":{"auth":"`+b64("later:x")+`"},"azure.example":{"auth":"`+b64("0000:")+`","identitytoken":"t"}},"credHelpers":{"ecr.example":"ecr-login"}}`)
	for _, tt := range []struct {
		host, repository string
		want             auth.Credential
	}{
		{DockerHub, "library/x", auth.Credential{Username: "hub", Password: "a:b"}},
		{"quay.io", "org/x/y", auth.Credential{Username: "org", Password: "x"}},
		{"quay.io", "organisation/x", auth.Credential{Username: "all", Password: "x"}},
		{"azure.example", "x", auth.Credential{Username: "0000", RefreshToken: "t"}},
		{"ghcr.io", "x", auth.EmptyCredential},
		{"evil.quay.io", "org/x", auth.EmptyCredential},
		{"quay.io:8443", "org/x", auth.EmptyCredential},
	} {
		if got := l.Of(tt.host, tt.repository); got != tt.want {
			t.Errorf("Of(%q, %q) = %+v, want %+v", tt.host, tt.repository, got, tt.want)
		}
	}
	for host, want := range map[string]string{"ghcr.io": "docker-credential-desktop", "ecr.example": "docker-credential-ecr-login"} {
		if got := l.Helper(host); got != want {
			t.Errorf("Helper(%q) = %q, want %q", host, got, want)
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
