//go:build !darwin && !windows && !(linux && (amd64 || arm64))

package runner

import (
	"context"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// candidates is empty: this system has no confinement that we know how to use.
func candidates(Options) []candidate { return nil }

func try(context.Context, starter) error { return nil }

func hint(*sandbox.Report) string { return "" }

// tryOverlay has nothing to try: no level mounts anything here.
func tryOverlay(context.Context, starter) string { return noNamespaces }

// tryLoopback has nothing to try: no level has such a network here.
func tryLoopback(context.Context, starter) error { return nil }
