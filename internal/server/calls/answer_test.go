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
		`{"requestState":7}`:                "requestState must be a text",
		`{"requestState":null}`:             "requestState must be a text",
		`{"inputResponses":[]}`:             "inputResponses must be an object",
		`{"inputResponses":{"approval":7}}`: `inputResponses has "approval", which must be an object`,
		`{"inputResponses":{"approval":{"action":"accept","content":{"decision":"deny","decision":"once"}}}}`:             `inputResponses cannot be read: key "decision" occurs twice`,
		`{"inputResponses":{"approval":{"action":"decline","acti\u006fn":"accept"}}}`:                                     `inputResponses cannot be read: key "action" occurs twice`,
		`{"inputResponses":{"approval":{"action":"decline"},"approval":{"action":"accept"}}}`:                             `inputResponses cannot be read: key "approval" occurs twice`,
		`{"inputResponses":{"approval":{"action":"decline","Action":"accept"}}}`:                                          `inputResponses has "approval", which cannot be read: key "Action" must be written "action"`,
		`{"inputResponses":{"approval":{"action":"accept","content":{"decision":"deny"},"CONTENT":{"decision":"once"}}}}`: `inputResponses has "approval", which cannot be read: key "CONTENT" must be written "content"`,
		`{"inputResponses":{"approval":{"content":{}}}}`:                                                                  `inputResponses has "approval", which must be the result of an elicitation: an "action", and "content" when it is accepted`,
	} {
		p := wire.ReadParams([]byte(raw))
		c := CarriedAnswer{State: p.Get("requestState"), Responses: p.Get("inputResponses")}
		if got := c.Problem(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
