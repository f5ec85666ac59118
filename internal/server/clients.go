package server

// What clients are known to do.

import (
	"context"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// patience returns how long a client is known to wait for a call; 0: not known.
// progress reports whether it wants to be told of progress.
func patience(client string, progress bool) time.Duration {
	// Measured with calls that waited; docs/reference/clients.md has the versions. Each is
	// less than the time after which the client was seen, or says, to give up.
	for _, known := range []struct {
		name     string // the beginning of clientInfo.name
		wait     time.Duration
		progress bool // only if it is told of progress
	}{
		{"claude-code", 4 * time.Minute, false},
		{"codex-mcp-client", 4 * time.Minute, false}, // gives up after 5 minutes
		{"copilot-cli", 150 * time.Second, false},    // gives up after 3 minutes, unless it is told of progress
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
