package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The notes about lists.
const (
	toolsChanged     = mcp.MethodNotificationToolsListChanged
	promptsChanged   = mcp.MethodNotificationPromptsListChanged
	resourcesChanged = mcp.MethodNotificationResourcesListChanged
)

// A listener is told about changes in its chat, if its client wants to know about
// them.
type listener interface {
	Tell(wire.Note)
}

// A listSet holds one flag for each kind of list.
type listSet struct{ tools, prompts, resources bool }

// hasSeen reports whether the chat's client may have seen anything of the packs.
func (c *chat) hasSeen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen != nil
}

// tell tells all listeners.
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

// saw remembers the first Catalog that a client could see any of.
func (c *chat) saw(now *packs.Catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = now
	}
}

// Refresh tells the client of every chat which of its lists have changed since it was
// told or given them. The watcher of the folders calls Refresh after each look, even
// if the look found nothing different: a list of tools is made from the files as they
// are at that moment, and they may have been different between two looks. Refresh
// does not wait for any client. It stops when ctx ends.
func (s *Server) Refresh(ctx context.Context) {
	now := s.opts.Library.Catalog(ctx)
	s.changeTo(now)
	s.shared.lookAgain()
	for _, c := range s.everyChat() {
		if ctx.Err() == nil && c.hasSeen() {
			s.follow(ctx, c)
		}
	}
}

// follow tells a chat's client which of its lists now differ from those that it was
// last told about, and from any that it was given since. Lists differ because a
// person detached a pack, or because files changed. The client may keep any of these
// lists.
func (s *Server) follow(ctx context.Context, c *chat) {
	// One at a time, each with the newest Catalog, so that the last thing told is
	// true.
	c.following.Lock()
	defer c.following.Unlock()
	now := s.catalog(ctx, c)
	c.mu.Lock()
	before, told := c.seen, c.told
	c.seen = now
	c.mu.Unlock()
	if before == nil || len(c.everyListener()) == 0 {
		return // The tools are compared with what was told once there is a listener.
	}
	if told == "" {
		told = s.toolsPrintBefore(before, c)
	}
	tools := s.toolsPrint(now, c)
	var prompts, resources bool
	if before != now {
		prompts, resources = s.listsDifferFor(c, before, now)
	}
	stray := c.nowTold(tools)
	if stray.tools || tools != told {
		c.tell(wire.Note{Method: toolsChanged})
	}
	if stray.prompts || prompts {
		c.tell(wire.Note{Method: promptsChanged})
	}
	if stray.resources || resources {
		c.tell(wire.Note{Method: resourcesChanged})
	}
}

// catchUp is follow for a chat whose client was told about an older Catalog. It
// returns the current one.
func (s *Server) catchUp(ctx context.Context, c *chat) *packs.Catalog {
	now := s.catalog(ctx, c)
	c.mu.Lock()
	c.seen = cmp.Or(c.seen, now)
	behind := c.seen != now
	c.mu.Unlock()
	if behind {
		s.follow(ctx, c)
	}
	return now
}

// nowTold remembers which tools the client is told about. It returns the lists of
// which the client was given a different version since it was last told. The caller
// holds following.
func (c *chat) nowTold(tools string) (stray listSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stray = c.stray
	c.told, c.stray = tools, listSet{}
	return stray
}

// giveTools returns the list of tools that list makes for the client, and remembers
// that the client has it. [Server.follow] waits meanwhile: otherwise it would compare
// without this list.
func (s *Server) giveTools(ctx context.Context, c *chat, list func(*packs.Catalog) []mcp.Tool) []mcp.Tool {
	c.following.Lock()
	defer c.following.Unlock()
	now := s.catalog(ctx, c)
	out := list(now)
	tools := string(offer.Print(out))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listed { // it has no older list
		c.told, c.listed = tools, true
	}
	c.seen = cmp.Or(c.seen, now)
	c.stray.tools = c.stray.tools || c.told != tools
	return out
}

// giveCatalog returns the packs for a list of prompts or resources that the client is
// given, and remembers that the client has both lists.
func (s *Server) giveCatalog(ctx context.Context, c *chat) *packs.Catalog {
	c.following.Lock()
	defer c.following.Unlock()
	now := s.catalog(ctx, c)
	c.saw(now)
	c.mu.Lock()
	before := c.seen
	c.mu.Unlock()
	if before == now {
		return now
	}
	prompts, resources := s.listsDifferFor(c, before, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stray.prompts = c.stray.prompts || prompts
	c.stray.resources = c.stray.resources || resources
	return now
}

// tellTools tells the client that its own call changed its tools.
func (s *Server) tellTools(catalog *packs.Catalog, c *chat) {
	c.following.Lock()
	defer c.following.Unlock()
	tools := s.toolsPrint(catalog, c)
	c.mu.Lock()
	c.told, c.stray.tools = tools, false
	c.mu.Unlock()
	c.tell(wire.Note{Method: toolsChanged})
}
