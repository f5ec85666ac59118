package server

import (
	"strings"
	"time"
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
