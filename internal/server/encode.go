package server

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// success encodes a result twice: structured, and as text with the same JSON
// for clients that read only that. A note becomes a member of it.
func success(ctx context.Context, out any, note string) (*mcp.CallToolResult, error) {
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
		failed() bool
		meta() *mcp.Meta
	}); ok {
		result.IsError = e.failed()
		result.Meta = e.meta()
	}
	if e, ok := out.(interface{ links() []mcp.Content }); ok && knowsLinks(ctx) {
		result.Content = append(result.Content, e.links()...)
	}
	return result, nil
}

// A noted result is one with a member "note".
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

// onceFor returns an error with its text alone for clients that show their model both
// that and the structure. The text has the same JSON.
func onceFor(ctx context.Context, result *mcp.CallToolResult) *mcp.CallToolResult {
	if result == nil || !result.IsError {
		return result
	}
	_, sess, ok := chatOf(ctx)
	if !ok {
		return result
	}
	name := sess.GetClientInfo().Name
	for _, known := range []string{"gemini-cli-mcp-client", "qwen-cli-mcp-client"} { // measured; see docs/reference/clients.md
		if strings.HasPrefix(name, known) {
			result.RawStructuredContent = nil
		}
	}
	return result
}

// knowsLinks reports whether the client's version of the protocol has links to
// resources in results.
func knowsLinks(ctx context.Context) bool {
	return mcpserver.RequestProtocolVersion(ctx) >= mcp.ProtocolVersion20250618
}

func failure(e *toolerr.Error) *mcp.CallToolResult {
	result, err := encode(struct {
		Error *toolerr.Error `json:"error"`
	}{e})
	if err != nil {
		// A schema or a pointer that is not JSON: say the rest.
		return mcp.NewToolResultError(e.Error())
	}
	result.IsError = true
	return result
}

func encode(v any) (*mcp.CallToolResult, error) {
	raw, err := strictjson.Encode(v) // models pay for every \u003c
	if err != nil {
		return nil, fmt.Errorf("encoding a result: %w", err)
	}
	// What came as JSON still has these, which some readers take for the end of a line.
	for from, to := range map[string]string{"\u2028": `\u2028`, "\u2029": `\u2029`} {
		if bytes.Contains(raw, []byte(from)) {
			raw = bytes.ReplaceAll(raw, []byte(from), []byte(to))
		}
	}
	return &mcp.CallToolResult{
		Content:              []mcp.Content{mcp.NewTextContent(string(raw))},
		RawStructuredContent: raw,
	}, nil
}
