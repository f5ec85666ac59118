package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// hasStyles turns escape sequences on in a console, and reports whether it
// understands them.
func hasStyles(f *os.File, _ string) bool {
	console := windows.Handle(f.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
