package runner

import (
	"fmt"
	"os"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/disk"
)

// whileRunning is how many times its limit a cache may hold during a run. With twice
// the limit, a run that stays within the limit by itself is never ended because of
// what earlier runs left.
const whileRunning = 2

// A cache is the open cache folder of one run.
type cache struct {
	folder *disk.Folder
	info   os.FileInfo
}

// openCache opens the Policy's Cache without following a link; nil: there is none.
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

// identity returns the folder's identity when it was opened; nil: there is no cache.
func (c *cache) identity() os.FileInfo {
	if c == nil {
		return nil
	}
	return c.info
}

// withCache returns p with its Cache added to Writable and Private.
func withCache(p sandbox.Policy) sandbox.Policy {
	if p.Cache != "" {
		p.Writable = append(slices.Clone(p.Writable), p.Cache)
		p.Private = append(slices.Clone(p.Private), p.Cache)
	}
	return p
}

// bound returns the bound that ends a run that fills the cache.
func (c *cache) bound(limits sandbox.Limits) *disk.Bound {
	return &disk.Bound{
		Folder: c.folder, Bytes: whileRunning * limits.Cache, Names: whileRunning * int64(limits.CacheNames),
		Cause: sandbox.CauseCacheLimit,
	}
}

// use returns what the cache holds after a run that ended with the cause why.
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
