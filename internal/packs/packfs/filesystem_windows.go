package packfs

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

func isLocal(dir string) bool {
	volume, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	return err == nil && windows.GetDriveType(volume) == windows.DRIVE_FIXED
}
