package grants

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// Bounds of what chats remember. A chat's oldest grants are dropped first; the next
// call that needs one asks again.
const (
	maxChatGrants = 1000     // of one chat
	maxChatBytes  = 64 << 20 // of all chats; each person has an equal share
)

// A ChatStore keeps the grants that hold in one chat. It is [Chats], or grantshared.Chats
// for chats that replicas have in common.
type ChatStore interface {
	// All returns what was allowed in the chats that have not ended, oldest first. It
	// includes grants that are void.
	All() []InChat
	// Of returns the grants of a chat, oldest first. What the grants refer to is shared
	// and must not be changed.
	Of(chat string) []Grant
	// Fits reports whether the chat of a caller has room for one more grant.
	Fits(caller *call.Caller, g Grant) bool
	// Add has the chat of a caller remember a grant.
	Add(caller *call.Caller, g Grant) error
	// Void ends the grants of a chat for which void returns something. For a grant that
	// has ended, void returns what it has.
	Void(chat string, void func(Grant) *Void) error
	// Drop forgets the grants of a chat that is reports true for.
	Drop(chat string, is func(Grant) bool) error
}

// ErrNoRoom means that a chat has no room for another grant.
var ErrNoRoom = errors.New("the chat has no room for another grant")

// Chats remember what was allowed in them, each for as long as it lasts. They are safe
// for concurrent use. Make one with [NewChats].
type Chats struct {
	people int // how many persons share the room; at least 1

	mu    sync.Mutex
	chats map[string]*remembered // :: chat → what was allowed in it
}

// A remembered chat holds what was allowed in it. It never changes; another one takes
// its place.
type remembered struct {
	person string
	client string  // its latest name for itself
	grants []Grant // oldest first
	bytes  int
}

// NewChats returns chats that remember nothing, of so many people; 0 means one.
func NewChats(people int) *Chats {
	return &Chats{people: max(1, people), chats: make(map[string]*remembered)}
}

// An InChat is a grant that holds in one chat.
type InChat struct {
	Grant
	Chat   string // opaque id
	Client string // name and version that the client gave; not safe to show
}

// newChatID returns an id for a grant of one chat. It is random: unlike a grant for
// every chat, it cannot be named by its facts, which several chats may share.
func newChatID() string { return strings.ToLower(rand.Text()[:8]) }

// All returns what was allowed in the chats that have not ended, oldest first. It
// includes grants that are void.
func (c *Chats) All() []InChat {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []InChat
	for chat, r := range c.chats {
		for _, g := range r.grants {
			all = append(all, InChat{g.Clone(), chat, r.client})
		}
	}
	slices.SortFunc(all, func(a, b InChat) int { return a.Since.Compare(b.Since) })
	return all
}

// Of returns the grants of a chat, oldest first. What the grants refer to is shared and
// must not be changed.
func (c *Chats) Of(chat string) []Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.chats[chat]; have != nil {
		return have.grants
	}
	return nil
}

// Fits reports whether the chat of a caller has room for one more grant. It has none
// if other chats of the same person fill theirs.
func (c *Chats) Fits(caller *call.Caller, g Grant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, fits := c.with(caller, g)
	return fits
}

// Add has the chat of a caller remember a grant, if that fits.
func (c *Chats) Add(caller *call.Caller, g Grant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, fits := c.with(caller, g)
	if !fits {
		return ErrNoRoom
	}
	c.chats[caller.Chat] = now
	return nil
}

// with returns what a chat remembers after one more grant is added. The caller holds
// mu.
func (c *Chats) with(caller *call.Caller, g Grant) (_ *remembered, fits bool) {
	room := maxChatBytes / c.people
	for id, r := range c.chats {
		if id != caller.Chat && r.person == g.Person {
			room -= r.bytes
		}
	}
	all := []Grant{g}
	if have := c.chats[caller.Chat]; have != nil {
		all = append(slices.DeleteFunc(slices.Clone(have.grants), g.Replaces), g)
	}
	now := &remembered{person: g.Person, client: caller.Client}
	from := len(all)
	for ; from > max(0, len(all)-maxChatGrants); from-- {
		size := all[from-1].size()
		if now.bytes+size > room {
			break
		}
		now.bytes += size
	}
	now.grants = all[from:]
	return now, len(now.grants) > 0
}

// Void ends the grants of a chat for which void returns something. For a grant that has
// ended, void returns what it has.
func (c *Chats) Void(chat string, void func(Grant) *Void) error {
	c.change(chat, func(all []Grant) []Grant {
		for i, g := range all {
			all[i].Void = void(g)
		}
		return all
	})
	return nil
}

// Drop forgets the grants of a chat that is reports true for.
func (c *Chats) Drop(chat string, is func(Grant) bool) error {
	c.change(chat, func(all []Grant) []Grant { return slices.DeleteFunc(all, is) })
	return nil
}

// change replaces the grants of a chat with what edit makes of a copy of them.
func (c *Chats) change(chat string, edit func([]Grant) []Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.chats[chat]
	if have == nil {
		return
	}
	now := &remembered{person: have.person, client: have.client, grants: edit(slices.Clone(have.grants))}
	for _, g := range now.grants {
		now.bytes += g.size()
	}
	c.chats[chat] = now
}

// Forget forgets a chat that has ended.
func (c *Chats) Forget(chat string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.chats, chat)
}
