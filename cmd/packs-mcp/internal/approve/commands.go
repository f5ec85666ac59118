// Package approve is the terminal's side of approvals: the commands that list,
// show and answer waiting calls, that go through them with a person, that open
// the page, and that list and revoke "always" answers. Package team below it logs in to a
// team's server.
//
// It decides nothing and knows no rules: it sends a code and a choice to a
// running server, whose gate offered both. The page is in internal/approvals.
package approve

import (
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/approve/team"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// An app is one run of the program; its methods are the commands.
type app struct {
	*cli.Env
	team team.Server // the flags that name a team's server
}

// Commands returns the commands approvals, login and logout.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{Env: e, team: team.New(e)}
	return append([]*cobra.Command{a.approvalsCommand()}, team.Commands(e)...)
}
