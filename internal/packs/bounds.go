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
	maxDirs = 200_000
	// maxPackDirs is how many directories below one pack are looked at, so that
	// no pack uses up the bound of the whole root. Real packs have a few dozen.
	maxPackDirs = 10_000
	// maxPackLinks is how many symlinks below one pack are followed, and maxLinks
	// how many below a root. Every scan resolves each of them again, since its
	// target can change without a trace, and a link may lead through many others.
	maxPackLinks = 100
	maxLinks     = 10_000
	// maxTries is how often a directory is listed when its documents vanish before
	// they are read.
	maxTries   = 3
	maxEntries = 100_000 // in one directory
	// maxSteps is how many steps (see [frontmatter.MaxSteps]) one scan spends on
	// all documents of a root: about a second. Twenty thousand packs with the
	// frontmatter that people write take fewer, and a document that did not change
	// since the last scan takes none. maxPackSteps is the share for everything
	// below one pack.
	maxSteps     = stepsShare * frontmatter.MaxSteps
	maxPackSteps = maxSteps / 8
	// One document gets at most 1/stepsShare of the steps that are left, so that
	// expensive documents leave enough for all the cheap ones.
	stepsShare = 16
)

// bounds hold these limits, or lower ones. A field that is 0 has its default.
type bounds struct{ dirs, packDirs, links, packLinks, entries, steps, packSteps int }

func (b bounds) withDefaults() bounds {
	return bounds{
		cmp.Or(b.dirs, maxDirs), cmp.Or(b.packDirs, maxPackDirs),
		cmp.Or(b.links, maxLinks), cmp.Or(b.packLinks, maxPackLinks), cmp.Or(b.entries, maxEntries),
		cmp.Or(b.steps, maxSteps), cmp.Or(b.packSteps, maxPackSteps),
	}
}

// patient returns b without the bound on steps, and so on time.
func (b bounds) patient() bounds {
	b.steps, b.packSteps = math.MaxInt/2, math.MaxInt/2
	return b
}

// budget is what is left of a pack's bounds: how many more directories and symlinks
// below it are looked at, and how many more steps its documents there may take.
type budget struct{ dirs, links, steps int }

// inspect reads the frontmatter of a document in the directory of v, as far as there
// are steps left for it. Every scan reads documents that are links, even a scan for
// another pack's sake, so all of them together get no more steps than one pack.
func (s *scanner) inspect(v *visit, name string, head []byte) (*frontmatter.Document, []diag.Diagnostic) {
	left, plain := v.place.budget, v.isPlain(name)
	steps := (s.bounds.steps - s.steps) / stepsShare
	if !plain {
		steps = min(steps, s.bounds.packSteps-s.linkSteps)
	}
	if left != nil {
		steps = min(steps, left.steps)
	}
	doc, problems, took := frontmatter.InspectWithin(name, head, s.origin.limits.Frontmatter, steps)
	s.steps += took
	if !plain {
		s.linkSteps += took
	}
	if left != nil {
		left.steps -= took
	}
	return doc, problems
}

// isUnread reports whether there were no steps left for a document. Such a record
// says nothing about the file, so the next full scan reads the file again even though
// it did not change. A scan of some directories does so only in those, so that no edit
// waits for the rest. Documents that were read take no more steps, so everything is
// read in the end.
func isUnread(problems []diag.Diagnostic) bool {
	return slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Code == frontmatter.CodeUnread })
}

// mayFollow reports whether one more symlink in the directory at p is followed. It
// reports the first one that is not.
func (s *scanner) mayFollow(p place) bool {
	const hint = "name the folders they lead to as folders of packs of their own"
	if p.budget != nil {
		if p.budget.links--; p.budget.links < 0 {
			if p.budget.links == -1 {
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
