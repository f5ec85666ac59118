package wire

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// secretive is a host that has a token.
type secretive struct{ greeter }

const someToken = "token-of-somebody-0123456789"

func (secretive) Redact(text string) string { return strings.ReplaceAll(text, someToken, "…") }

// A session keeps the beginning of a long name, without tokens, and of a client's
// capabilities only what it needs.
func TestWhatIsKeptOfAClient(t *testing.T) {
	s := NewSession(secretive{}, nil, alone{}, new(Peer), nil)
	long := strings.Repeat("é", maxClientName-10) + someToken + strings.Repeat("é", 50)
	s.SetClientInfo(mcp.Implementation{Name: long, Version: long, Title: long})
	info := s.GetClientInfo()
	for _, got := range []string{info.Name, info.Version} {
		if n := utf8.RuneCountInString(got); n != maxClientName+1 || strings.Contains(got, someToken[:4]) {
			t.Errorf("%q is kept, want %d characters without the token", got, maxClientName)
		}
	}
	if info.Title != "" {
		t.Errorf("the title %q is kept", info.Title)
	}
	s.SetClientCapabilities(mcp.ClientCapabilities{Elicitation: new(mcp.ElicitationCapability), Experimental: map[string]any{"x": long}})
	if caps := s.GetClientCapabilities(); caps.Experimental != nil || !s.CanAsk() {
		t.Errorf("the capabilities %+v are kept", caps)
	}
}
