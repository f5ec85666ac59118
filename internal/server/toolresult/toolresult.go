// Package toolresult writes what a tool returns as the result of a call: structured,
// and as text with the same JSON for clients that read only text.
//
// It does not decide what a client may know about an error; see package toolerr.
package toolresult

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Success returns the result for what a tool returned. The note becomes a member of
// it. links reports whether the client knows links to resources in results.
func Success(out any, note string, links bool) (*mcp.CallToolResult, error) {
	if note != "" {
		out = noted{out, note}
	}
	result, err := encode(out)
	if err != nil {
		return nil, err
	}
	if n, ok := out.(noted); ok {
		out = n.result
	}
	if e, ok := out.(interface {
		Failed() bool
		Meta() *mcp.Meta
	}); ok {
		result.IsError = e.Failed()
		result.Meta = e.Meta()
	}
	if e, ok := out.(interface{ Links() []mcp.Content }); ok && links {
		result.Content = append(result.Content, e.Links()...)
	}
	return result, nil
}

// A noted result is one with an additional member "note".
type noted struct {
	result any
	note   string
}

// MarshalJSON puts the note first, where no client cuts it off.
func (n noted) MarshalJSON() ([]byte, error) {
	raw, err := strictjson.Encode(n.result)
	if err != nil {
		return nil, err
	}
	note, err := strictjson.Encode(map[string]string{"note": n.note})
	if err != nil {
		return nil, err
	}
	if bytes.Equal(raw, []byte("{}")) {
		return note, nil
	}
	return slices.Concat(note[:len(note)-1], []byte(","), raw[1:]), nil
}

// Failure returns the result for an error.
func Failure(e *toolerr.Error) *mcp.CallToolResult {
	result, err := encode(struct {
		Error *toolerr.Error `json:"error"`
	}{e})
	if err != nil {
		// A schema or a pointer is not JSON: return the rest.
		return mcp.NewToolResultError(e.Error())
	}
	result.IsError = true
	return result
}

func encode(v any) (*mcp.CallToolResult, error) {
	raw, err := JSON(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a result: %w", err)
	}
	return &mcp.CallToolResult{
		Content:              []mcp.Content{mcp.NewTextContent(string(raw))},
		RawStructuredContent: raw,
	}, nil
}

// JSON returns v in the form for models: with as few escapes as are safe to read.
func JSON(v any) (json.RawMessage, error) {
	raw, err := strictjson.Encode(v) // each \u003c costs a model several tokens
	if err != nil {
		return nil, err
	}
	// Embedded JSON may still have these, which some readers take for line ends.
	for from, to := range map[string]string{"\u2028": `\u2028`, "\u2029": `\u2029`} {
		if bytes.Contains(raw, []byte(from)) {
			raw = bytes.ReplaceAll(raw, []byte(from), []byte(to))
		}
	}
	return raw, nil
}
