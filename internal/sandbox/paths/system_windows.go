package paths

import "golang.org/x/sys/windows"

// SystemDirs returns the folders of the system and its packages, which every
// run can read.
func SystemDirs() []string {
	var dirs []string
	if dir, err := windows.GetSystemWindowsDirectory(); err == nil {
		dirs = append(dirs, dir)
	}
	for _, id := range []*windows.KNOWNFOLDERID{
		windows.FOLDERID_ProgramFiles, windows.FOLDERID_ProgramFilesX86, windows.FOLDERID_ProgramFilesCommon,
	} {
		if dir, err := windows.KnownFolderPath(id, windows.KF_FLAG_DEFAULT); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return existing(dirs...)
}
