package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// onDisk is how many bytes a file has; what the disk sets aside is not known.
func onDisk(info os.FileInfo) int64 { return info.Size() }

// severalNames knows nothing of other names.
func severalNames(os.FileInfo) (fileID, bool) { return fileID{}, false }

// freeSpace is how much of the disk under dir a user can still fill.
func freeSpace(dir string) (int64, bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if windows.GetDiskFreeSpaceEx(name, &free, nil, nil) != nil {
		return 0, false
	}
	return int64(min(free, 1<<62)), true
}
