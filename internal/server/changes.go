package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The notes about lists.
const (
	toolsChanged     = mcp.MethodNotificationToolsListChanged
	promptsChanged   = mcp.MethodNotificationPromptsListChanged
	resourcesChanged = mcp.MethodNotificationResourcesListChanged
)

// A listener is told of changes that concern its chat, if its client wants to
// know of them.
type listener interface {
	Tell(wire.Note)
}

// isBehind reports whether a chat was told of another Catalog than this.
func (c *chat) isBehind(now *packs.Catalog) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen != nil && (c.base != now || c.view != c.seen)
}

// tell tells everybody who listens.
func (c *chat) tell(n wire.Note) {
	for _, l := range c.everyListener() {
		l.Tell(n)
	}
}

func (c *chat) everyListener() []listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.listeners)
}

// saw remembers the first Catalog that a client could see something of.
func (c *chat) saw(now *packs.Catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = now
	}
}

// Refresh tells the client of every chat which of its lists differ from what
// they were, after the packs may have changed, or what is attached. Whoever watches
// the folders of packs calls it; no client keeps it waiting. It leaves off when ctx
// ends.
func (s *Server) Refresh(ctx context.Context) {
	now := s.opts.Library.Catalog(ctx) // once for all of them: it looks at the disk
	s.changeTo(now)
	for _, c := range s.everyChat() {
		if ctx.Err() == nil && c.isBehind(now) {
			s.follow(ctx, c)
		}
	}
}

// follow tells a chat's client which of its lists the packs, as they are now,
// make different from what they were when it was called before: a person
// detaches one, or its files change.
func (s *Server) follow(ctx context.Context, c *chat) {
	// One at a time, each with the newest Catalog: what is told last is what is so.
	c.following.Lock()
	defer c.following.Unlock()
	now := s.catalog(ctx, c)
	c.mu.Lock()
	before, listed := c.seen, c.listed
	c.seen = now
	c.mu.Unlock()
	if before == nil || before == now {
		return
	}
	if len(c.everyListener()) == 0 {
		return // What its client knows of its tools is compared at a change that somebody hears.
	}
	if listed == "" {
		listed = s.toolsPrint(before, c)
	}
	if tools := s.toolsPrint(now, c); tools != listed {
		c.setListed(tools)
		c.tell(wire.Note{Method: toolsChanged})
	}
	prompts, resources := s.listsDifferFor(c, before, now)
	if prompts {
		c.tell(wire.Note{Method: promptsChanged})
	}
	if resources {
		c.tell(wire.Note{Method: resourcesChanged})
	}
}

// setListed remembers what a client knows, or has been told, of its tools.
func (c *chat) setListed(tools string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listed = tools
}

// printOf digests a list as it goes to a client; nil when it cannot.
func printOf(list any) []byte {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}
