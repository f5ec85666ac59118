package runner

import "github.com/packs-mcp/packs-mcp/internal/sandbox/windows"

// host is the system of this machine.
type host = windows.System
