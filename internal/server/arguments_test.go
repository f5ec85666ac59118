package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestRawArguments: arguments are kept without what means nothing, and without the
// room that it took up; what they say stays byte for byte.
func TestRawArguments(t *testing.T) {
	pad := strings.Repeat(" \t\r\n", 1<<18)
	for raw, want := range map[string]string{
		`{"a": "x y" , "b": [1.0,1e2]}`:                `{"a":"x y","b":[1.0,1e2]}`,
		`{` + pad + `"a"` + pad + `:1` + pad + `}`:     `{"a":1}`,
		pad + `{"a":"` + "\\u0041<\u2028" + `"}` + pad: `{"a":"` + "\\u0041<\u2028" + `"}`,
		`{"a":1, "a":2}`:                               `{"a":1,"a":2}`, // refused later, as it is
		pad:                                            `{}`,
		`null`:                                         `{}`,
		` null `:                                       `{}`,
		`[ 1 ]`:                                        `[1]`,
	} {
		var req mcp.CallToolRequest
		req.Params.RawArguments = json.RawMessage(raw)
		got, err := rawArguments(req)
		if err != nil || string(got) != want {
			t.Errorf("rawArguments(%.40q) = %q, %v, want %q", raw, got, err, want)
		}
		if cap(got) > 2*len(want)+64 {
			t.Errorf("rawArguments(%.40q) keeps %d bytes for %d", raw, cap(got), len(got))
		}
	}
	var req mcp.CallToolRequest
	req.Params.RawArguments = json.RawMessage(`{"a":`)
	if got, err := rawArguments(req); err == nil {
		t.Errorf("rawArguments(what is no JSON) = %q, want an error", got)
	}
}
