// Package catalog has the commands list, show and prompt, which show a person
// the packs, and attach and detach.
//
// It does not find packs itself or open them for a model: internal/packs finds
// them, and a running server notices what is attached.
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
	return []*cobra.Command{a.listCommand(), a.foldersCommand(), a.showCommand(), a.attachCommand(), a.detachCommand(), a.promptCommand()}
}
