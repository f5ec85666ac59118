// Package auditcmd reads the audit log for a person: it shows, follows and
// verifies the log, and explains from it why a run failed.
//
// It writes no line of the log. Package internal/audit defines what the log
// holds.
package auditcmd

import (
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the commands audit and sandbox.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.auditCommand(), a.sandboxCommand()}
}
