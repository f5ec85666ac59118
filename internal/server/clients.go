package server

// What is known about clients.

import (
	"context"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/server/chats"
)

// patience returns how long a client is known to wait for a call; 0: not known.
// progress says whether the client asked for progress.
func patience(client string, progress bool) time.Duration {
	// Measured with calls that waited; docs/reference/clients.md has the versions.
	// Each value is less than the time after which the client was seen to give up, or
	// says that it does.
	for _, known := range []struct {
		name     string // the beginning of clientInfo.name
		wait     time.Duration
		progress bool // only if it gets progress
	}{
		{"claude-code", 4 * time.Minute, false},
		{"codex-mcp-client", 4 * time.Minute, false}, // gives up after 5 minutes
		{"copilot-cli", 150 * time.Second, false},    // gives up after 3 minutes, unless it gets progress
		{"gemini-cli-mcp-client", 4 * time.Minute, false},
		{"opencode", 4 * time.Minute, true}, // gives up after 1 minute without progress
		{"qwen-cli-mcp-client", 4 * time.Minute, false},
	} {
		if strings.HasPrefix(client, known.name) && (progress || !known.progress) {
			return known.wait
		}
	}
	return 0
}

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
