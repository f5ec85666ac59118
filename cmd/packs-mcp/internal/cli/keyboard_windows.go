package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardInput drops typed input that was not read yet. A file that is not a
// console has none.
func discardInput(f *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
