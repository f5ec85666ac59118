package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// onDisk returns the file's size; the allocated size is not known.
func onDisk(info os.FileInfo) int64 { return info.Size() }

// severalNames returns false: other names are not known here.
func severalNames(os.FileInfo) (fileID, bool) { return fileID{}, false }

// freeSpace returns how many bytes a user can still write to dir's disk.
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
