package server

// What is known about clients.

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/server/chats"
)

// onceFor returns an error with only its text for clients that show their model both
// the text and the structured content. The text has the same JSON.
func onceFor(ctx context.Context, result *mcp.CallToolResult) *mcp.CallToolResult {
	if result == nil || !result.IsError {
		return result
	}
	_, sess, ok := chats.Of(ctx)
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
