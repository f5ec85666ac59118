package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// hasStyles reports whether a terminal understands escape sequences, and has a console
// begin to.
func hasStyles(f *os.File, _ string) bool {
	console := windows.Handle(f.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
