package server

import (
	"bytes"
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// success encodes a result twice: structured, and as text with the same JSON
// for clients that read only that.
func success(ctx context.Context, out any) (*mcp.CallToolResult, error) {
	result, err := encode(out)
	if err != nil {
		return nil, err
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

// knowsLinks reports whether the client's version of the protocol has links to
// resources in results.
func knowsLinks(ctx context.Context) bool {
	return mcpserver.RequestProtocolVersion(ctx) >= mcp.ProtocolVersion20250618
}

func failure(e *toolError) *mcp.CallToolResult {
	result, err := encode(struct {
		Error *toolError `json:"error"`
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
