//go:build unix && !linux

package approve

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops what was typed and not read yet, the beginning of a line
// included. What is no terminal holds nothing back.
func discardInput(f *os.File) {
	const input = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, input)
}
