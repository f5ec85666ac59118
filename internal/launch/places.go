package launch

import "os"

// systemPlaces are where systems other than Windows and macOS keep their own programs:
// the first is NixOS's, the rest are everyone else's. PATH is not used, since its early
// folders may belong to a project.
var systemPlaces = [...]string{"/run/current-system/sw/bin/", "/usr/bin/", "/usr/local/bin/"}

// systemProgram returns the path of a program of the system; empty if there is none.
// exists reports whether a file exists.
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
