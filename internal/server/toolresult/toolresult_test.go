package toolresult

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// Results that are encoded by hand equal what the library's types would encode.
func TestEncodeMessage(t *testing.T) {
	made, err := encode(map[string]any{"content": "<b>\u2028\n\"quoted\" \xff", "number": 1.5})
	if err != nil {
		t.Fatal(err)
	}
	// Raw JSON keeps its bytes, except those that a reader could take for the end of
	// a line.
	breaks, err := encode(map[string]any{"schema": json.RawMessage("{\"enum\":[\"a\u2028b\u2029c\"]}")})
	if err != nil {
		t.Fatal(err)
	}
	withMore := *made
	withMore.IsError, withMore.ResultType = true, mcp.ResultTypeComplete
	withMore.Meta = &mcp.Meta{AdditionalFields: map[string]any{"at": "end"}}
	response := func(result any) any {
		return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(json.RawMessage(`"an \"id\""`)), Result: result}
	}
	for name, message := range map[string]any{
		"a call's result":        response(made),
		"with other line breaks": response(breaks),
		"with all there is":      response(&withMore),
		"as a value":             response(withMore),
		"of several lines":       response(&mcp.CallToolResult{RawStructuredContent: []byte("{\n\"a\":\r1}")}),
		"structured, not raw":    response(&mcp.CallToolResult{StructuredContent: map[string]any{"a": 1}}),
		"both":                   response(&mcp.CallToolResult{StructuredContent: map[string]any{"a": 1}, RawStructuredContent: []byte(`{"b":2}`)}),
		"an empty call's":        response(&mcp.CallToolResult{}),
		"no call's":              response((*mcp.CallToolResult)(nil)),
		"a list":                 response(mcp.ListToolsResult{Tools: []mcp.Tool{mcp.NewTool("t")}}),
		"nothing":                response(nil),
		"raw":                    response(json.RawMessage(`{"a": [1, 2]}`)),
		"a number for an id":     mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(int64(7)), Result: made},
		"an error":               mcp.NewJSONRPCError(mcp.NewRequestId(int64(1)), wire.CodeInternal, "no", nil),
		"a notification":         mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION},
	} {
		line, err := wire.Encode(message)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, r := range string(line) {
			if r < ' ' || r == '\u2028' || r == '\u2029' || r == '\u0085' {
				t.Errorf("%s: the line holds a %q: %q", name, r, line)
			}
		}
		if n := bytes.Count(line, []byte(`"structuredContent"`)); n > 1 {
			t.Errorf("%s: structuredContent is there %d times: %s", name, n, line)
		}
		library, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(line, &got); err != nil {
			t.Errorf("%s: %v: %s", name, err, line)
		}
		if err := json.Unmarshal(library, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-library +ours):\n%s", name, diff)
		}
	}
	for name, message := range map[string]any{
		"a result that is not JSON": response(json.RawMessage(`{`)),
		"an id that is not JSON":    mcp.JSONRPCResponse{ID: mcp.NewRequestId(json.RawMessage(`{`)), Result: made},
		"content that is not JSON":  response(&mcp.CallToolResult{Content: []mcp.Content{nil}, Result: mcp.Result{Meta: &mcp.Meta{AdditionalFields: map[string]any{"f": func() {}}}}, RawStructuredContent: []byte("{}")}),
	} {
		if line, err := wire.Encode(message); err == nil {
			t.Errorf("%s is encoded as %s", name, line)
		}
	}
}
