//go:build linux && (amd64 || arm64)

package linux

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

// publicRules are Landlock rules for what everybody may read in a folder. A server
// that runs as root needs them: with root's own rights, a program would see the whole
// machine's passwords and keys. They are computed once, so that a run that changes a
// file's mode does not open it to the next run. The zero value is ready.
type publicRules struct {
	once  sync.Once
	known []confine.Rule
}

func (p *publicRules) rules(dir string) []confine.Rule {
	p.once.Do(func() {
		rules, all := publicIn(dir)
		if all {
			p.known = []confine.Rule{{Path: dir, Access: supervised.AccessRead}}
			return
		}
		p.known = append(rules, confine.Rule{Path: dir, Access: unix.LANDLOCK_ACCESS_FS_READ_DIR})
	})
	return p.known
}

// publicIn returns rules for what everybody may read below dir. all reports whether
// that is everything there.
func publicIn(dir string) (rules []confine.Rule, all bool) {
	const everybody fs.FileMode = 0o004
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, false
	}
	all = true
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		switch {
		case err != nil:
			all = false
		case info.Mode().Type() == fs.ModeSymlink: // its target decides
		case info.Mode()&everybody == 0:
			all = false
		case info.IsDir():
			below, every := publicIn(path)
			if every {
				below = []confine.Rule{{Path: path, Access: supervised.AccessRead}}
			}
			rules, all = append(rules, below...), all && every
		case info.Mode().IsRegular():
			rules = append(rules, confine.Rule{Path: path, Access: supervised.AccessRead & supervised.AccessFile})
		}
	}
	return rules, all
}
