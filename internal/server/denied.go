package server

// What a pack's digest denies is in no private copy of the pack, so a call that names
// it cannot work.

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// deniedIn returns why the command of one call, with everything filled in, cannot run:
// it names a denied file of the pack. It is nil when it names none.
func deniedIn(of *planCall, c *sandbox.Command) error {
	return of.Pack.DeniedIn(of.Tree, c.Dir, slices.Concat(programFiles(c.Program), []string{c.Program.Resolved}, c.Args, c.Env))
}
