package runner

import (
	"fmt"
	"os"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// whileRunning is how many times as much as between runs a cache may hold while one
// goes on: a run that needs no more than a cache may hold never ends because of what
// earlier ones left.
const whileRunning = 2

// A cache is a run's.
type cache struct {
	folder *filled
	info   os.FileInfo
}

// openCache opens the folder of the Policy's Cache, and nothing that a link leads
// to; nil: there is none.
func openCache(p *sandbox.Policy) (*cache, error) {
	if p.Cache == "" {
		return nil, nil
	}
	bad := func(err error) (*cache, error) {
		return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("cache %q", p.Cache), Err: err}
	}
	at, err := os.Lstat(p.Cache)
	if err == nil && !at.IsDir() {
		err = errNoFolder
	}
	if err != nil {
		return bad(err)
	}
	root, err := os.OpenRoot(p.Cache)
	if err != nil {
		return bad(err)
	}
	c := &cache{}
	if c.folder, err = openFilled(root); err != nil {
		return bad(err)
	}
	if c.info, err = root.Stat("."); err == nil && !os.SameFile(at, c.info) {
		err = errNoFolder
	}
	if err != nil {
		c.close()
		return bad(err)
	}
	return c, nil
}

func (c *cache) close() {
	if c != nil {
		c.folder.close()
	}
}

// withCache is p with what having a Cache means: it is one more folder of ours that
// the run may change.
func withCache(p sandbox.Policy) sandbox.Policy {
	if p.Cache != "" {
		p.Writable = append(slices.Clone(p.Writable), p.Cache)
		p.Private = append(slices.Clone(p.Private), p.Cache)
	}
	return p
}

// bound is what ends a run that fills the cache.
func (c *cache) bound(limits sandbox.Limits) *bound {
	return &bound{
		folder: c.folder, bytes: whileRunning * limits.Cache, names: whileRunning * int64(limits.CacheNames),
		cause: sandbox.CauseCacheLimit,
	}
}

// use says what the cache holds after a run that ended because of why.
func (c *cache) use(limits sandbox.Limits, why sandbox.Cause) sandbox.CacheUse {
	if c == nil {
		return sandbox.CacheUse{}
	}
	names := int64(limits.CacheNames)
	now := c.folder.measure(names + 1)
	return sandbox.CacheUse{
		Bytes: now.bytes,
		Full:  now.deep || now.bytes > limits.Cache || now.names > names || why == sandbox.CauseCacheLimit || why == sandbox.CauseDiskFull,
	}
}
