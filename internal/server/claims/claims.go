// Package claims keeps runs of one server apart of which one may change what the
// other's answer is bound to.
//
// The bytes that an answer is bound to are compared before a program starts, and
// read by the program some time after that. Another run in the same folder could
// change them in between: it even sees, by inotify, when they were compared. So
// while a run goes on, no other run of this server may change what its answer is
// bound to. Runs that would wait for each other's end.
//
// It compares no bytes, and it knows nothing of the runs of other servers: those take
// turns in folders, which is the runner's to keep.
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
	layers []string // folders that change when the run ends, and where it takes its turn
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

// conflicts reports whether one of two runs may change what the other's answer is
// bound to.
func (c *Claim) conflicts(other *Claim) bool {
	return c.changes(other) || other.changes(c)
}

// changes reports whether a run may change what other's answer is bound to. Where
// both take their turn, that keeps them apart.
func (c *Claim) changes(other *Claim) bool {
	apart := slices.DeleteFunc(slices.Clone(c.layers), func(dir string) bool { return slices.Contains(other.layers, dir) })
	return reaches(c.writes, other.bound) || reaches(apart, other.bound)
}

// reaches reports whether a run that may change the folders of writes may change
// one of bound, or something in it.
func reaches(writes, bound []string) bool {
	return slices.ContainsFunc(bound, func(path string) bool {
		return paths.Inside(writes, path) || slices.ContainsFunc(writes, func(dir string) bool { return paths.Inside([]string{path}, dir) })
	})
}

// A Set is the claims of a server's runs. The zero value is ready.
type Set struct {
	mu      sync.Mutex
	all     []*Claim      // in order of arrival
	ended   int           // see Count
	changed chan struct{} // closed when one is given back; nil: nobody waits
}

// Take waits until no run that came before conflicts with own, and returns what
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

// blocked returns a channel that is closed when it is time to look again; nil
// when nothing is in own's way.
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

// Touch counts a run whose program has ended. Its claim is given back only when its
// result is made. A call that goes on before that must notice what the run changed.
func (c *Set) Touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
}

// Count returns how often a run ended or a claim was given back so far.
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
