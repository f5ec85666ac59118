package packs_test

import (
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

func init() {
	packs.NewToolFiles = func(mode string) packs.ToolFiles { return toolfiles.New(tools.Limits{}, mode) }
}
