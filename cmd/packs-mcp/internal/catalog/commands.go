// Package catalog shows a person which packs there are, as list, show and prompt
// print them, and attaches and detaches them.
//
// It finds no packs itself and opens none for a model: internal/packs finds them,
// and a running server hears of what is attached.
package catalog

import (
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the commands list, show, attach, detach and prompt.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.listCommand(), a.showCommand(), a.attachCommand(), a.detachCommand(), a.promptCommand()}
}
