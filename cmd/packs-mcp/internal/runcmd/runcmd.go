// Package runcmd has the commands with which a person runs the tools of packs in
// their own terminal: try, call and test.
//
// Each command starts a whole service and is its only client. No call bypasses the
// gate; the command only passes on what the person answers in the terminal.
package runcmd

import (
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// An app is one run of the program. Its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the commands try, call and test.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.tryCommand(), a.callCommand(), a.testCommand()}
}
