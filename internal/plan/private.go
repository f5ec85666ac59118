package plan

// What no run may have: the whole of the user's home folder, and the keys and tokens
// of this program.

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// homeFolders returns the user's home folder as it is spelled and as it is
// without links, or nothing when it is not known.
func homeFolders(environ []string) []string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	home := variable(environ, name)
	if !filepath.IsAbs(home) {
		return nil
	}
	return slices.Compact(paths.Spellings([]string{home}))
}

// holdsHome reports whether dir is a home folder or has it in it, or is the top
// of a file system.
func holdsHome(homes []string, dir string) bool {
	dir = filepath.Clean(dir)
	return filepath.Dir(dir) == dir || slices.ContainsFunc(homes, func(home string) bool { return within(home, dir) })
}

// HoldsPrivate reports whether path is in a folder with the keys by which calls
// are approved, or has one in it.
func (p *Planner) HoldsPrivate(path string) bool {
	return slices.ContainsFunc(p.opts.Private, func(own string) bool {
		return own != "" && (within(own, path) || within(path, own))
	})
}

// checkPrivate makes sure that no run reads what is private because it lies where
// every run reads.
func checkPrivate(private []string) error {
	for _, path := range private {
		if everyRunReads(path) {
			return fmt.Errorf("%q is for packs-mcp alone, and in a folder of the system's, which every program of a pack may read; keep it elsewhere", path)
		}
	}
	return nil
}

// everyRunReads reports whether a path is in a folder of the system's that runs
// are shown. Of /etc, runs of root's get only what everybody may read.
func everyRunReads(path string) bool {
	if path == "" || !paths.IsSystem(path) {
		return false
	}
	if runtime.GOOS == "linux" && os.Getuid() == 0 && within(path, "/etc") {
		info, err := os.Stat(path)
		return err != nil || info.Mode()&0o004 != 0
	}
	return true
}
