package plan

// What no run may get: the whole of the user's home folder, and the keys and tokens
// of this program.

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// homeFolders returns the user's home folder, as it is spelled and without links;
// empty if it is not known.
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

// holdsHome reports whether dir is or contains a home folder, or is the root of a
// file system.
func holdsHome(homes []string, dir string) bool {
	dir = filepath.Clean(dir)
	return filepath.Dir(dir) == dir || slices.ContainsFunc(homes, func(home string) bool { return within(home, dir) })
}

// HoldsPrivate reports whether path is in, or contains, a folder with the keys with
// which calls are approved.
func (p *Planner) HoldsPrivate(path string) bool {
	return slices.ContainsFunc(p.opts.Private, func(own string) bool {
		return own != "" && (within(own, path) || within(path, own))
	})
}

// checkPrivate makes sure that no private path is in a place that every run can read.
func checkPrivate(private []string) error {
	for _, path := range private {
		if everyRunReads(path) {
			return fmt.Errorf("%q is for packs-mcp alone, but is in a system folder that every pack's programs may read; keep it elsewhere", path)
		}
	}
	return nil
}

// everyRunReads reports whether a path is in a system folder that runs can see. In
// /etc, root's runs see only what everybody may read.
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
