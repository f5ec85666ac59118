//go:build amd64 || arm64

package runner

import "github.com/packs-mcp/packs-mcp/internal/sandbox/linux"

// host is the system of this machine.
type host = linux.System
