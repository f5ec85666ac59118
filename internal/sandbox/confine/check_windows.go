package confine

import (
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/probe"
)

// On Windows nothing needs a helper: the server itself starts a program that is
// confined before it runs. Only the probe's program is left.
func init() {
	if len(os.Args) >= 2 && os.Args[1] == CheckArg {
		os.Exit(probe.Main(os.Args[2:]))
	}
}
