//go:build !darwin && !windows && !(linux && (amd64 || arm64))

package runner

import (
	"log/slog"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

// host is a system for which no confinement is implemented.
type host struct{}

func (host) Candidates(*slog.Logger) []level.Candidate { return nil }

func (host) Hint(*sandbox.Report) string { return "" }

func (host) Sweep() {}
