package confine

import (
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/seatbelt"
)

// On macOS, package seatbelt has both helpers. It imports only what this package may
// import.
func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case Arg:
		os.Exit(seatbelt.Main(os.Args[2:]))
	case CheckArg:
		os.Exit(seatbelt.Check(os.Stdout, os.Args[2:]))
	}
}
