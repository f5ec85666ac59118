package packs

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// ToolFiles are those of package toolfiles.
type ToolFiles interface {
	Load(*Pack) (*tools.Set, []diag.Diagnostic, error)
	HasTools(*Pack) bool
}

// NewToolFiles is toolfiles.New without limits. That package imports this one, so these
// tests get it from outside.
var NewToolFiles func(mode string) ToolFiles

func jsonTool(name string) string {
	return fmt.Sprintf(`{"name": %q, "description": "d", "command": {"program": "true", "args": []}}`, name)
}
