// Package doctor says what works on this machine, and what keeps packs from running:
// it checks the sandbox, the configuration, the folders of packs, the audit log and
// the clients that are set up.
//
// It changes and repairs nothing. The commands validate and list report what is wrong
// with one pack.
package doctor

import (
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// An app is one run of the program; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the command doctor.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.doctorCommand()}
}
