package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops typed input that was not read yet, including the beginning
// of a line. A file that is not a terminal has none.
func discardInput(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
