package packfs

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// starving are the errors of who starves. EMFILE and the like are numbers that
// package syscall has for Windows, and that no call there returns.
func starving() []syscall.Errno {
	return []syscall.Errno{
		windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY,
		windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_COMMITMENT_LIMIT,
	}
}
