package runner

import (
	"fmt"
	"os"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
)

// whileRunning is how many times as much as between runs a cache may hold while one
// goes on: a run that needs no more than a cache may hold never ends because of what
// earlier ones left.
const whileRunning = 2

// A cache is a run's.
type cache struct {
	folder *disk.Folder
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
	if c.folder, err = disk.Open(root); err != nil {
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
		c.folder.Close()
	}
}

// identity is what the folder was when it was opened; nil: there is none.
func (c *cache) identity() os.FileInfo {
	if c == nil {
		return nil
	}
	return c.info
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
func (c *cache) bound(limits sandbox.Limits) *disk.Bound {
	return &disk.Bound{
		Folder: c.folder, Bytes: whileRunning * limits.Cache, Names: whileRunning * int64(limits.CacheNames),
		Cause: sandbox.CauseCacheLimit,
	}
}

// use says what the cache holds after a run that ended because of why.
func (c *cache) use(limits sandbox.Limits, why sandbox.Cause) sandbox.CacheUse {
	if c == nil {
		return sandbox.CacheUse{}
	}
	names := int64(limits.CacheNames)
	now := c.folder.Measure(names + 1)
	return sandbox.CacheUse{
		Bytes: now.Bytes,
		Full:  now.Deep || now.Bytes > limits.Cache || now.Names > names || why == sandbox.CauseCacheLimit || why == sandbox.CauseDiskFull,
	}
}
