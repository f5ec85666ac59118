// Package lists knows which lists of tools, prompts and resources the client of a
// chat has, and tells it when one of them has changed.
//
// It makes no list: its caller does, from the packs as they are. It does not look for
// changes either: it compares when it is told to.
package lists

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The notes about lists.
const (
	ToolsChanged     = mcp.MethodNotificationToolsListChanged
	PromptsChanged   = mcp.MethodNotificationPromptsListChanged
	ResourcesChanged = mcp.MethodNotificationResourcesListChanged
)

// A Listener is told about changes, if its client wants to know about them.
type Listener interface {
	Tell(wire.Note)
}

// A Chat is what a [Follower] has to know about its chat.
type Chat interface {
	// Catalog returns the packs as the chat has them now.
	Catalog(context.Context) *packs.Catalog
	// Tools returns the list of the chat's tools.
	Tools(*packs.Catalog) []mcp.Tool
	// HasOwnPacks reports whether a person attached or detached something in this chat
	// alone, so that no other chat has the same Catalog.
	HasOwnPacks() bool
	// HasOwnTools reports whether the chat enabled tools, which may be gone by now.
	HasOwnTools() bool
}

// A listSet holds one flag for each kind of list.
type listSet struct{ tools, prompts, resources bool }

// A Follower follows the changes of one chat. It is safe for concurrent use.
type Follower struct {
	chat   Chat
	shared *Shared

	following sync.Mutex // held while the client is told of changes, or a list is made for it; before mu

	mu        sync.Mutex
	listeners []Listener
	seen      *packs.Catalog // of the last call; see Follow
	told      string         // the tools that the client was last told about, or first given, see digest; empty: nothing
	listed    bool           // the client was given its tools
	stray     listSet        // lists of which the client was given another version since it was told
}

// NewFollower returns the Follower of a chat, whose client has seen nothing yet.
func NewFollower(c Chat, s *Shared) *Follower { return &Follower{chat: c, shared: s} }

// Listen tells l about changes, until Unlisten.
func (f *Follower) Listen(l Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.listeners, l) {
		f.listeners = append(f.listeners, l)
	}
}

// Unlisten ends what Listen began.
func (f *Follower) Unlisten(l Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = slices.DeleteFunc(f.listeners, func(have Listener) bool { return have == l })
}

// Tell tells all listeners.
func (f *Follower) Tell(n wire.Note) {
	for _, l := range f.everyListener() {
		l.Tell(n)
	}
}

func (f *Follower) everyListener() []Listener {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.listeners)
}

// HasSeen reports whether the chat's client may have seen anything of the packs.
func (f *Follower) HasSeen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen != nil
}

// Saw remembers the first Catalog that a client could see any of.
func (f *Follower) Saw(now *packs.Catalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = now
	}
}

// Follow tells the chat's client which of its lists now differ from those that it was
// last told about, and from any that it was given since. Lists differ because a
// person detached a pack, or because files changed. The client may keep any of these
// lists.
func (f *Follower) Follow(ctx context.Context) {
	// One at a time, each with the newest Catalog, so that the last thing told is
	// true.
	f.following.Lock()
	defer f.following.Unlock()
	now := f.chat.Catalog(ctx)
	f.mu.Lock()
	before, told := f.seen, f.told
	f.seen = now
	f.mu.Unlock()
	if before == nil || len(f.everyListener()) == 0 {
		return // The tools are compared with what was told once there is a listener.
	}
	if told == "" {
		told = f.digestBefore(before)
	}
	tools := f.digest(now)
	var prompts, resources bool
	if before != now {
		prompts, resources = f.differ(before, now)
	}
	stray := f.nowTold(tools)
	if stray.tools || tools != told {
		f.Tell(wire.Note{Method: ToolsChanged})
	}
	if stray.prompts || prompts {
		f.Tell(wire.Note{Method: PromptsChanged})
	}
	if stray.resources || resources {
		f.Tell(wire.Note{Method: ResourcesChanged})
	}
}

// CatchUp is Follow for a chat whose client was told about an older Catalog. It
// returns the current one.
func (f *Follower) CatchUp(ctx context.Context) *packs.Catalog {
	now := f.chat.Catalog(ctx)
	f.mu.Lock()
	f.seen = cmp.Or(f.seen, now)
	behind := f.seen != now
	f.mu.Unlock()
	if behind {
		f.Follow(ctx)
	}
	return now
}

// nowTold remembers which tools the client is told about. It returns the lists of
// which the client was given a different version since it was last told. The caller
// holds following.
func (f *Follower) nowTold(tools string) (stray listSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stray = f.stray
	f.told, f.stray = tools, listSet{}
	return stray
}

// GiveTools returns the list of tools that list makes for the client, and remembers
// that the client has it. [Follower.Follow] waits meanwhile: otherwise it would
// compare without this list.
func (f *Follower) GiveTools(ctx context.Context, list func(*packs.Catalog) []mcp.Tool) []mcp.Tool {
	f.following.Lock()
	defer f.following.Unlock()
	now := f.chat.Catalog(ctx)
	out := list(now)
	tools := string(offer.Print(out))
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.listed { // it has no older list
		f.told, f.listed = tools, true
	}
	f.seen = cmp.Or(f.seen, now)
	f.stray.tools = f.stray.tools || f.told != tools
	return out
}

// GiveCatalog returns the packs for a list of prompts or resources that the client is
// given, and remembers that the client has both lists.
func (f *Follower) GiveCatalog(ctx context.Context) *packs.Catalog {
	f.following.Lock()
	defer f.following.Unlock()
	now := f.chat.Catalog(ctx)
	f.Saw(now)
	f.mu.Lock()
	before := f.seen
	f.mu.Unlock()
	if before == now {
		return now
	}
	prompts, resources := f.differ(before, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stray.prompts = f.stray.prompts || prompts
	f.stray.resources = f.stray.resources || resources
	return now
}

// TellTools tells the client that its own call changed its tools.
func (f *Follower) TellTools(catalog *packs.Catalog) {
	f.following.Lock()
	defer f.following.Unlock()
	tools := f.digest(catalog)
	f.mu.Lock()
	f.told, f.stray.tools = tools, false
	f.mu.Unlock()
	f.Tell(wire.Note{Method: ToolsChanged})
}

// digest returns a digest of the list of the chat's tools, by which lists are compared.
// For chats that attached, detached and enabled nothing of their own, it is made once
// after each look at the packs and shared. For any other chat it is made from the
// packs' files as they are now.
func (f *Follower) digest(catalog *packs.Catalog) string {
	if f.chat.HasOwnPacks() || f.chat.HasOwnTools() {
		return string(offer.Print(f.chat.Tools(catalog)))
	}
	return f.shared.digest(catalog)
}

// digestBefore is digest for an earlier Catalog. If a digest of it is remembered, that
// digest shows the packs' files as they were then; otherwise it is made from the files
// as they are now.
func (f *Follower) digestBefore(catalog *packs.Catalog) string {
	if !f.chat.HasOwnPacks() && !f.chat.HasOwnTools() {
		if have, ok := f.shared.digestBefore(catalog); ok {
			return have
		}
	}
	return f.digest(catalog)
}

// differ reports which lists of the chat differ between two Catalogs.
func (f *Follower) differ(before, now *packs.Catalog) (prompts, resources bool) {
	if f.chat.HasOwnPacks() {
		return f.shared.opts.Differ(before, now)
	}
	return f.shared.differ(before, now)
}
