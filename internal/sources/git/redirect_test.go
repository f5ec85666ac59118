package git

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// Redirects are followed to servers that may be asked, without the password.
func TestGitRedirects(t *testing.T) {
	var (
		mu    sync.Mutex
		to    string   // where the first server leads
		heard []string // credentials that the second server received
	)
	second := upstream.NewRepo(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			heard = append(heard, r.Header.Get("Authorization")+r.Header.Get("Cookie"))
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	})
	want := second.Commit(upstream.Files{"SKILL.md": sourcestest.Document})
	asked := ""
	first := upstream.NewRepo(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked = r.Header.Get("Authorization")
			w.Header().Set("Set-Cookie", "secret=1")
			http.Redirect(w, r, to+"/info/refs?"+r.URL.RawQuery, http.StatusFound)
		})
	})
	lead := func(at string) {
		mu.Lock()
		defer mu.Unlock()
		to, asked, heard = at, "", nil
	}
	other := strings.Replace(second.URL, "127.0.0.1", "localhost", 1)
	open := func(private ...string) (sources.Snapshot, error) {
		r, err := address.Parse(strings.Replace(first.URL, "http://", "http://me@", 1))
		if err != nil {
			t.Fatal(err)
		}
		return Open(t.Context(), &web.Access{Private: private, Credentials: func(host string) (string, string) {
			if host == "127.0.0.1" {
				return "me", "secret"
			}
			return "", ""
		}}, r)
	}

	lead(other)
	snap, err := open("127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	if snap.Pin() != "git:"+want {
		t.Errorf("pin %s, want %s", snap.Pin(), want)
	}
	if err := snap.Close(); err != nil {
		t.Error(err)
	}
	if asked == "" || len(heard) < 2 || strings.Join(heard, "") != "" {
		t.Errorf("the first server was told %q, want a password; the second %q, want nothing, twice", asked, heard)
	}

	for _, at := range []string{other, "http://10.0.0.1/x.git", "https://[::1]/x.git", "ftp://127.0.0.1/x.git", "file:///etc", "https://169.254.169.254/x.git"} {
		lead(at)
		if snap, err := open("127.0.0.1"); err == nil {
			t.Errorf("%s: it was fetched from %s", at, snap.Resolved())
		} else if !errors.As(err, new(*web.HostError)) && !strings.Contains(err.Error(), "unsupported scheme") {
			t.Errorf("%s: %v, want another refusal", at, err)
		}
		if len(heard) != 0 {
			t.Errorf("%s: the second server was asked", at)
		}
	}

	lead(first.URL) // in a circle
	if _, err := open("127.0.0.1"); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("a circle: %v, want a refusal", err)
	}
}
