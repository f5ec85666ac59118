package packs

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
)

// Bounds of the walk through one root.
const (
	maxDepth = 16 // of nearly all real packs; directories of the root are 1 deep
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
	// maxSteps is how many steps, see [frontmatter.MaxSteps], are taken for all
	// documents of a root that a scan reads: about a second. Twenty thousand packs
	// whose frontmatter is YAML as people write it take fewer; what did not change
	// since the scan before takes none. maxPackSteps is how many of them are for
	// what is below one pack.
	maxSteps     = stepsShare * frontmatter.MaxSteps
	maxPackSteps = maxSteps / 8
	// stepsShare is which part of the steps that are left, at most, one document
	// takes: those that take many leave enough for all that take few.
	stepsShare = 16
)

// bounds are those, or fewer. A field that is 0 has its default.
type bounds struct{ dirs, packDirs, links, packLinks, entries, steps, packSteps int }

func (b bounds) withDefaults() bounds {
	return bounds{
		cmp.Or(b.dirs, maxDirs), cmp.Or(b.packDirs, maxPackDirs),
		cmp.Or(b.links, maxLinks), cmp.Or(b.packLinks, maxPackLinks), cmp.Or(b.entries, maxEntries),
		cmp.Or(b.steps, maxSteps), cmp.Or(b.packSteps, maxPackSteps),
	}
}

// patient are bounds without one of time.
func (b bounds) patient() bounds {
	b.steps, b.packSteps = math.MaxInt/2, math.MaxInt/2
	return b
}

// room is how many more directories, and symlinks, the pack may have below it, and
// how many more steps its documents there may take to read.
type room struct{ dirs, links, steps int }

// inspect reads the frontmatter of a document in the directory of v, as far as there
// are steps for it. Documents that are links are read by every scan, also by one for
// the sake of another pack, and so have no more steps together than a pack.
func (s *scanner) inspect(v *visit, name string, head []byte) (*frontmatter.Document, []diag.Diagnostic) {
	room, plain := v.place.room, v.isPlain(name)
	steps := (s.bounds.steps - s.steps) / stepsShare
	if !plain {
		steps = min(steps, s.bounds.packSteps-s.linkSteps)
	}
	if room != nil {
		steps = min(steps, room.steps)
	}
	doc, problems, took := frontmatter.InspectWithin(name, head, s.origin.limits.Frontmatter, steps)
	s.steps += took
	if !plain {
		s.linkSteps += took
	}
	if room != nil {
		room.steps -= took
	}
	return doc, problems
}

// isUnread reports whether there were no steps for a document. Such a record says
// nothing of the file, and is not counted on when there are steps again: at the next
// look at everything, which reads this file though it did not change. A look at some
// directories does so in those only, so that no edit waits for it. As what was read
// takes no steps any more, everything is read in the end.
func isUnread(problems []diag.Diagnostic) bool {
	return slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Code == frontmatter.CodeUnread })
}

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
			s.reportDir(p, CodeTooManyDirs, fmt.Sprintf("%s holds more than %d links, and those from here on were not followed", s.root.Dir, s.bounds.links), hint)
		}
		return false
	}
	return true
}
