package terminal

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

// A token goes where nobody on the way can read it, and to no other server.
func TestRemote(t *testing.T) {
	for _, address := range []string{
		"http://packs.example.com", "http://127.0.0.1.example.com", "http://localhost.example.com", "packs.example.com", "ftp://packs.example.com",
		"https://", "https://a:b@packs.example.com", "https://packs.example.com/?a=b", "https://packs.example.com/#a", "unix:/run/packs", "",
	} {
		if s, err := Remote(address, Fixed("token")); err == nil {
			t.Errorf("Remote(%q) = %+v, want an error", address, s)
		}
	}
	for _, token := range []string{"", "a b", "a\nb", "ä"} {
		s, err := Remote("https://packs.example.com", Fixed(token))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Pending(t.Context()); err == nil || !strings.Contains(err.Error(), "characters that no token has") {
			t.Errorf("Pending() with a token %q = %v, want it refused", token, err)
		}
	}
	for address, want := range map[string]string{
		"https://packs.example.com": "https://packs.example.com", "https://packs.example.com/": "https://packs.example.com",
		"https://packs.example.com/mcp": "https://packs.example.com", "https://example.com/packs/mcp": "https://example.com/packs",
		"http://localhost:8080": "http://localhost:8080", "http://[::1]:8080/": "http://[::1]:8080",
	} {
		if s, err := Remote(address, Fixed("token")); err != nil || s.Name != want {
			t.Errorf("Remote(%q) = %v, %v, want %q", address, s, err, want)
		}
	}
	stolen := false
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = true }))
	defer thief.Close()
	leads := httptest.NewServer(http.RedirectHandler(thief.URL+control.TeamPrefix+control.PathPending, http.StatusTemporaryRedirect))
	defer leads.Close()
	s, err := Remote(leads.URL, Fixed("token"))
	if err != nil {
		t.Fatal(err)
	}
	if calls, err := s.Pending(t.Context()); err == nil || stolen {
		t.Errorf("Pending() of a server that leads elsewhere = %v, %v; the other one was asked: %v", calls, err, stolen)
	}
}
