// Package claims keeps two runs of one server apart if one of them may change what
// the other's answer is bound to.
//
// The bytes that an answer is bound to are compared before a program starts, and the
// program reads them some time after that. Another run in the same folder could
// change them in between: with inotify it can even see when they are compared. So
// while a run goes on, no other run of this server may change what its answer is
// bound to. Such runs wait for each other.
//
// It compares no bytes, and it does not know the runs of other servers: those take
// turns in folders, which the runner arranges.
package claims

import (
	"context"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// A Claim is what a run may change, and what must not change while it runs.
type Claim struct {
	writes []string // folders, without links
	layers []string // folders that change when the run ends, in which it takes turns
	bound  []string // files and folders, without links
}

// Of returns the claim of a run that permit allows.
func Of(permit *gate.Permit, run *gate.Run) *Claim {
	own := new(Claim)
	for _, dir := range run.Policy.Writable {
		own.writes = append(own.writes, paths.WithoutLinks(dir))
	}
	for _, l := range run.Policy.Layers {
		if l.Kind != sandbox.LayerReadOnly {
			own.layers = append(own.layers, paths.WithoutLinks(l.Folder))
		}
	}
	files := run.Inputs
	if permit.ByGrant() {
		files = slices.Concat(files, run.Reads)
	}
	for _, f := range files {
		own.bound = append(own.bound, f.Path)
	}
	return own
}

// conflicts reports whether one of the two runs may change what the other's answer is
// bound to.
func (c *Claim) conflicts(other *Claim) bool {
	return c.changes(other) || other.changes(c)
}

// changes reports whether a run may change what other's answer is bound to. If both
// take turns in a folder, that already keeps them apart.
func (c *Claim) changes(other *Claim) bool {
	apart := slices.DeleteFunc(slices.Clone(c.layers), func(dir string) bool { return slices.Contains(other.layers, dir) })
	return reaches(c.writes, other.bound) || reaches(apart, other.bound)
}

// reaches reports whether a run that may change the folders in writes may change a
// path in bound, or something in it.
func reaches(writes, bound []string) bool {
	return slices.ContainsFunc(bound, func(path string) bool {
		return paths.Inside(writes, path) || slices.ContainsFunc(writes, func(dir string) bool { return paths.Inside([]string{path}, dir) })
	})
}

// A Set holds the claims of a server's runs. The zero value is ready.
type Set struct {
	mu      sync.Mutex
	all     []*Claim      // in order of arrival
	ended   int           // see Count
	changed chan struct{} // closed when a claim is given back; nil: nobody waits
}

// Take waits until no earlier run conflicts with own, and returns the function that
// ends the claim.
func (c *Set) Take(ctx context.Context, own *Claim) (release func(), err error) {
	c.mu.Lock()
	c.all = append(c.all, own)
	c.mu.Unlock()
	release = sync.OnceFunc(func() { c.drop(own) })
	for {
		changed := c.blocked(own)
		if changed == nil {
			return release, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			release()
			return nil, context.Cause(ctx)
		}
	}
}

// blocked returns a channel that is closed when it is time to look again, or nil if
// own conflicts with no earlier claim.
func (c *Set) blocked(own *Claim) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.all[:slices.Index(c.all, own)]
	if !slices.ContainsFunc(before, own.conflicts) {
		return nil
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// Touch counts a run whose program has ended. Its claim is given back later, when its
// result is made, and a call that goes on before that must notice what the run
// changed.
func (c *Set) Touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
}

// Count returns how many times a run ended or a claim was given back so far.
func (c *Set) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *Set) drop(own *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
	c.all = slices.DeleteFunc(c.all, func(other *Claim) bool { return other == own })
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}
