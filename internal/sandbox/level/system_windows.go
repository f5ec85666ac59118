package level

import (
	"syscall"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

// KeepDescriptors has nothing to do: Go passes a list of the handles that are
// inherited.
func KeepDescriptors() {}

// spaceOf is the length of the command line in 16-bit units, each argument with
// its quotes, and with the 0 at its end.
func spaceOf(argv, _ []string) int {
	size := 0
	for _, s := range argv {
		size += winjob.UTF16Len(syscall.EscapeArg(s)) + 1
	}
	return size
}

// argSpace is the longest command line that CreateProcess takes.
func argSpace() int { return 32_767 }
