package approve

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops what was typed and not read yet, the beginning of a line
// included. What is no terminal holds nothing back.
func discardInput(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
