package launch

import "os"

// systemPlaces are where systems other than Windows and macOS keep their own programs:
// NixOS in the first, and all others in the rest. A folder that is early on PATH may
// be a project's.
var systemPlaces = [...]string{"/run/current-system/sw/bin/", "/usr/bin/", "/usr/local/bin/"}

// systemProgram returns the path of one of the system's programs; empty if there is
// none. exists reports whether there is such a file.
func systemProgram(name string, exists func(string) bool) string {
	for _, dir := range systemPlaces {
		if exists(dir + name) {
			return dir + name
		}
	}
	return ""
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
