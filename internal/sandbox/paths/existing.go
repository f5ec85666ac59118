//go:build !linux

package paths

import (
	"os"
	"slices"
)

// existing returns the paths that exist.
func existing(paths ...string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}
