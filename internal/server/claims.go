package server

import (
	"context"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// The bytes that an answer is bound to are compared before a program starts, and
// read by the program some time after that. Another run in the same folder could
// change them in between: it even sees, by inotify, when they were compared. So
// while a run goes on, no other run of this server may change what its answer is
// bound to. Runs that would wait for each other's end.

// A claim is what a run may change, and what must not change while it runs.
type claim struct {
	writes []string // folders, without links
	layers []string // folders that change when the run ends, and where it takes its turn
	bound  []string // files and folders, without links
}

// claimOf returns the claim of a run that permit allows.
func claimOf(permit *gate.Permit, run *gate.Run) *claim {
	own := new(claim)
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
func (c *claim) conflicts(other *claim) bool {
	return c.changes(other) || other.changes(c)
}

// changes reports whether a run may change what other's answer is bound to. Where
// both take their turn, that keeps them apart.
func (c *claim) changes(other *claim) bool {
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

// claims are those of a server's runs. The zero value is ready.
type claims struct {
	mu      sync.Mutex
	all     []*claim      // in the order in which they came
	ended   int           // see count
	changed chan struct{} // closed when one is given back; nil: nobody waits
}

// take waits until no run that came before conflicts with own, and returns what
// ends the claim.
func (c *claims) take(ctx context.Context, own *claim) (release func(), err error) {
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
func (c *claims) blocked(own *claim) <-chan struct{} {
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

// touch counts a run whose program has ended. Its claim is given back only when its
// result is made. A call that goes on before that must notice what the run changed.
func (c *claims) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
}

// count returns how often a run ended or a claim was given back so far.
func (c *claims) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *claims) drop(own *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
	c.all = slices.DeleteFunc(c.all, func(other *claim) bool { return other == own })
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}
