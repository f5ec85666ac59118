// Package author has the commands for pack authors: validate, convert and new.
//
// It needs no configuration and runs nothing from a pack. The rules for packs
// are in internal/packs/lint, and the formats in internal/packs/convert.
package author

import (
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the commands validate, convert and new.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.validateCommand(), a.convertCommand(), a.newCommand()}
}
