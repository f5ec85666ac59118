package calls

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// A request that carries no answer, or one that is well formed, gets no further checks.
func TestNoAnswerIsCarried(t *testing.T) {
	for _, raw := range []string{`{}`, `{"name":"x"}`, `{"inputResponses":{}}`, `{"inputResponses":{"a":{}},"requestState":""}`, `{"inputResponses":{"approval":{"action":"cancel"}}}`} {
		p := wire.ReadParams([]byte(raw))
		c := CarriedAnswer{State: p.Get("requestState"), Responses: p.Get("inputResponses")}
		if text := c.Problem(); text != "" {
			t.Errorf("%s: %q, want no problem", raw, text)
		}
	}
	for raw, want := range map[string]string{
		`{"requestState":7}`:                             "requestState must be a text",
		`{"requestState":null}`:                          "requestState must be a text",
		`{"inputResponses":[]}`:                          "inputResponses must be an object",
		`{"inputResponses":{"approval":7}}`:              `inputResponses has "approval", which must be an object`,
		`{"inputResponses":{"approval":{"content":{}}}}`: `inputResponses has "approval", which must be the result of an elicitation: an "action", and "content" when it is accepted`,
	} {
		p := wire.ReadParams([]byte(raw))
		c := CarriedAnswer{State: p.Get("requestState"), Responses: p.Get("inputResponses")}
		if got := c.Problem(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
