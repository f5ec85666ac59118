package level

import (
	"syscall"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

// KeepDescriptors does nothing: Go passes an explicit list of handles to inherit.
func KeepDescriptors() {}

// spaceOf returns the length of the command line in 16-bit units, with quotes and the
// final 0.
func spaceOf(argv, _ []string) int {
	size := 0
	for _, s := range argv {
		size += winjob.UTF16Len(syscall.EscapeArg(s)) + 1
	}
	return size
}

// argSpace returns the longest command line that CreateProcess accepts.
func argSpace() int { return 32_767 }
