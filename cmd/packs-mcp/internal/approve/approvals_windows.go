package approve

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardInput drops what was typed and not read yet. What is no console holds
// nothing back.
func discardInput(f *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
