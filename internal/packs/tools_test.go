package packs

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// ToolFiles has the methods of package toolfiles that are needed here.
type ToolFiles interface {
	Load(*Pack) (*tools.Set, []diag.Diagnostic, error)
	HasTools(*Pack) bool
}

// NewToolFiles is toolfiles.New without limits. That package imports this one, so an
// external test package sets it.
var NewToolFiles func(mode string) ToolFiles

func jsonTool(name string) string {
	return fmt.Sprintf(`{"name": %q, "description": "d", "command": {"program": "true", "args": []}}`, name)
}
