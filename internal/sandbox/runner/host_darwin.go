package runner

import "github.com/packs-mcp/packs-mcp/internal/sandbox/darwin"

// host is the system of this machine.
type host = darwin.System
