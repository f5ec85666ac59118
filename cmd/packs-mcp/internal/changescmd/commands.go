// Package changescmd lets a person view, apply, discard and undo what runs
// changed, with a command and on the page, and records each decision first.
//
// It changes no files itself: internal/sandbox/changes applies and undoes
// changes.
package changescmd

import (
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the command changes.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.changesCommand()}
}
