package calls

import (
	"strings"
	"time"
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
