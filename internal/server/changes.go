package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// A note tells a client that something it may have is no longer what is there.
type note struct {
	method string
	uri    string // of notifications/resources/updated; empty otherwise
}

// The notes about lists.
const (
	toolsChanged     = mcp.MethodNotificationToolsListChanged
	promptsChanged   = mcp.MethodNotificationPromptsListChanged
	resourcesChanged = mcp.MethodNotificationResourcesListChanged
)

// A listener is told of changes that concern its chat, if its client wants to
// know of them.
type listener interface {
	tell(note)
}

// isBehind reports whether a chat was told of another Catalog than this.
func (c *chat) isBehind(now *packs.Catalog) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen != nil && (c.base != now || c.view != c.seen)
}

// tell tells everybody who listens.
func (c *chat) tell(n note) {
	for _, l := range c.everyListener() {
		l.tell(n)
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
		c.tell(note{method: toolsChanged})
	}
	prompts, resources := s.listsDifferFor(c, before, now)
	if prompts {
		c.tell(note{method: promptsChanged})
	}
	if resources {
		c.tell(note{method: resourcesChanged})
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
