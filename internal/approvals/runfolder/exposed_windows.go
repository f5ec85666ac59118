package runfolder

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const OpenFlags = os.O_RDONLY

// Exposed finds nothing: here the folder's access control list decides, which
// admits only the user by default, and mode bits do not show it.
func Exposed(fs.FileInfo) string { return "" }

// ProcessGone reports whether the process certainly does not exist.
func ProcessGone(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER) // no process has this id
	}
	defer windows.CloseHandle(h)
	const stillActive = 259
	var code uint32
	return windows.GetExitCodeProcess(h, &code) == nil && code != stillActive
}
