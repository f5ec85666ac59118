package paths

import (
	"os"
	"slices"
)

// IsSystem reports whether a path, absolute and without links, is in a folder of
// the system's own, where ordinary users change nothing.
func IsSystem(path string) bool { return Inside(SystemDirs(), path) }

// existing returns those of paths that exist.
func existing(paths ...string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}
