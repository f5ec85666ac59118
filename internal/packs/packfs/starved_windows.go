package packfs

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// starving returns the errors for exhausted resources. Package syscall defines EMFILE and
// the like for Windows, but no call there returns them.
func starving() []syscall.Errno {
	return []syscall.Errno{
		windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY,
		windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_COMMITMENT_LIMIT,
	}
}
