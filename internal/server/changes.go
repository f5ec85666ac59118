package server

import (
	"cmp"
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

// listSet says of each list whether something is so.
type listSet struct{ tools, prompts, resources bool }

// hasSeen reports whether the chat's client can have seen something of the packs.
func (c *chat) hasSeen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen != nil
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
// they were, or from one that it was given meanwhile. The watcher of the folders
// calls it after each look, also when the look found nothing different: a list of
// tools is made from the files as they are at that moment, which may have been
// others between two looks. No client keeps it waiting. It leaves off when ctx ends.
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

// follow tells a chat's client which of its lists, as they are now, differ from
// those that it was last told of, or from any that it was given since: a person
// detaches a pack, or files change. A client may keep either.
func (s *Server) follow(ctx context.Context, c *chat) {
	// One at a time, each with the newest Catalog: what is told last is what is so.
	c.following.Lock()
	defer c.following.Unlock()
	now := s.catalog(ctx, c)
	c.mu.Lock()
	before, told := c.seen, c.told
	c.seen = now
	c.mu.Unlock()
	if before == nil || len(c.everyListener()) == 0 {
		return // The tools are compared with what was told when somebody hears it.
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

// catchUp is follow for a chat whose client was told of other packs than there are
// now. It returns these.
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

// nowTold remembers the tools that the client is told of, and returns which lists
// it was given others of since the last time. The caller holds following.
func (c *chat) nowTold(tools string) (stray listSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stray = c.stray
	c.told, c.stray = tools, listSet{}
	return stray
}

// giveTools returns the list of tools that list makes for the client, and
// remembers that the client has it. [Server.follow] waits meanwhile: it would
// compare what the client has without this list.
func (s *Server) giveTools(ctx context.Context, c *chat, list func(*packs.Catalog) []mcp.Tool) []mcp.Tool {
	c.following.Lock()
	defer c.following.Unlock()
	now := s.catalog(ctx, c)
	out := list(now)
	tools := string(printOf(out))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listed { // it has no older list
		c.told, c.listed = tools, true
	}
	c.seen = cmp.Or(c.seen, now)
	c.stray.tools = c.stray.tools || c.told != tools
	return out
}

// giveCatalog returns the packs of which the client is given a list of prompts or
// resources, and remembers that the client has both lists.
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

// tellTools tells the client that its tools changed by what it did itself.
func (s *Server) tellTools(catalog *packs.Catalog, c *chat) {
	c.following.Lock()
	defer c.following.Unlock()
	tools := s.toolsPrint(catalog, c)
	c.mu.Lock()
	c.told, c.stray.tools = tools, false
	c.mu.Unlock()
	c.tell(wire.Note{Method: toolsChanged})
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
