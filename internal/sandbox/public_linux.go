//go:build amd64 || arm64

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
)

// publicFor is how long what publicRules found is taken to be still so. A look
// at all of /etc takes some milliseconds.
const publicFor = time.Minute

// publicRules are Landlock rules for what everybody may read in a folder. A
// server that root runs needs them: with root's own rights, a program would see
// the passwords and keys of the whole machine. The zero value is ready.
type publicRules struct {
	mu    sync.Mutex
	at    time.Time      // when known was found; guarded by mu
	known []confine.Rule // guarded by mu
}

func (p *publicRules) rules(dir string) []confine.Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || time.Since(p.at) > publicFor {
		p.known, p.at = []confine.Rule{{Path: dir, Access: unix.LANDLOCK_ACCESS_FS_READ_DIR}}, time.Now()
		if rules, all := publicIn(dir); all {
			p.known = []confine.Rule{{Path: dir, Access: accessRead}}
		} else {
			p.known = append(p.known, rules...)
		}
	}
	return p.known
}

// publicIn returns rules for what everybody may read below dir, and whether
// that is all there is.
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
		case info.Mode().Type() == fs.ModeSymlink: // what it leads to decides
		case info.Mode()&everybody == 0:
			all = false
		case info.IsDir():
			below, every := publicIn(path)
			if every {
				below = []confine.Rule{{Path: path, Access: accessRead}}
			}
			rules, all = append(rules, below...), all && every
		case info.Mode().IsRegular():
			rules = append(rules, confine.Rule{Path: path, Access: accessRead & accessFile})
		}
	}
	return rules, all
}
