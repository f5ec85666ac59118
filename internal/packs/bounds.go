package packs

import (
	"cmp"
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// Bounds of the walk through one root.
const (
	maxDepth = 6
	maxDirs  = 200_000
	// maxPackDirs is how many directories below one pack are looked at, so that
	// no pack takes the room of all others. Real ones have some dozen.
	maxPackDirs = 10_000
	// maxPackLinks is how many symlinks below one pack are followed, and maxLinks
	// how many of a root: where each leads is found out at every scan, since it
	// can change without a mark, and a link may lead through many others.
	maxPackLinks = 100
	maxLinks     = 10_000
	// maxTries is how often a directory is listed from which documents vanish
	// before they are read.
	maxTries   = 3
	maxEntries = 100_000 // of one directory
)

// bounds are those, or fewer. A field that is 0 has its default.
type bounds struct{ dirs, packDirs, links, packLinks, entries int }

func (b bounds) withDefaults() bounds {
	return bounds{
		cmp.Or(b.dirs, maxDirs), cmp.Or(b.packDirs, maxPackDirs),
		cmp.Or(b.links, maxLinks), cmp.Or(b.packLinks, maxPackLinks), cmp.Or(b.entries, maxEntries),
	}
}

// room is how many more directories, and symlinks, the pack may have below it.
type room struct{ dirs, links int }

// mayFollow reports whether one more symlink in the directory at p is followed,
// and says so when it is the first that is not.
func (s *scanner) mayFollow(p place) bool {
	const hint = "name the folders they lead to as folders of packs of their own"
	if p.room != nil {
		if p.room.links--; p.room.links < 0 {
			if p.room.links == -1 {
				s.reportDir(p, CodeTooManyDirs, fmt.Sprintf("the pack that this folder belongs to has more than %d links, and the rest of them were not followed", s.bounds.packLinks), hint)
			}
			return false
		}
	}
	if s.follows++; s.follows > s.bounds.links {
		if s.follows == s.bounds.links+1 {
			s.report(diag.Warning, CodeTooManyDirs, s.root.Dir, fmt.Sprintf("the folder holds more than %d links, and the rest of them were not followed", s.bounds.links), hint)
		}
		return false
	}
	return true
}
