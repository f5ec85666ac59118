package grants

import (
	"errors"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// A Book has every answer of a server that holds for more than one call. Chats is
// required. It is safe for concurrent use.
type Book struct {
	Store  Store     // of every chat; nil: no answer holds in every chat
	Chats  *Chats    // of the chats of this server alone
	Common ChatStore // of the chats that replicas have in common; nil: there are none
}

// Everywhere returns the grants that hold in every chat.
func (b *Book) Everywhere() ([]Grant, error) {
	if b.Store == nil {
		return nil, nil
	}
	return b.Store.Load()
}

// InChats returns what was allowed in the chats that have not ended, oldest first. It
// includes grants that are void.
func (b *Book) InChats() []InChat {
	all := b.Chats.All()
	if b.Common != nil {
		all = append(all, b.Common.All()...)
		slices.SortStableFunc(all, func(a, b InChat) int { return a.Since.Compare(b.Since) })
	}
	return all
}

// InChat returns the grants of a caller's chat, oldest first. What the grants refer to is
// shared and must not be changed.
func (b *Book) InChat(c *call.Caller) []Grant { return b.chats(c).Of(c.Chat) }

// chats returns where the answers for the chat of a caller are kept.
func (b *Book) chats(c *call.Caller) ChatStore {
	if c.Shared && b.Common != nil {
		return b.Common
	}
	return b.Chats
}

// KeepInChat has a grant hold in the chat of its caller, under a new id. It calls record
// before that: no grant holds that is not in the log. An error is record's, [ErrNoRoom]
// before record was called, or that the grant could not be kept after that.
func (b *Book) KeepInChat(c *call.Caller, g Grant, record func(Grant) error) error {
	g.ID = newChatID()
	chats := b.chats(c)
	if !chats.Fits(c, g) {
		return ErrNoRoom
	}
	if err := record(g); err != nil {
		return err
	}
	return chats.Add(c, g)
}

// Keep has a grant hold in every chat, under an id that no other has. It calls record as
// KeepInChat does. An error may wrap record's.
func (b *Book) Keep(g Grant, record func(Grant) error) error {
	return b.Store.Update(func(all []Grant) ([]Grant, error) {
		all = slices.DeleteFunc(all, g.Replaces)
		for slices.ContainsFunc(all, func(have Grant) bool { return have.ID == g.ID }) && len(g.ID) < len(g.Digest) {
			g.ID = g.Digest[:len(g.ID)+1]
		}
		if err := record(g); err != nil {
			return nil, err
		}
		return append(all, g), nil
	})
}

// TakeBack removes the grant with this digest from the caller's chat, and from those that
// hold in every chat.
func (b *Book) TakeBack(c *call.Caller, digest string) error {
	is := func(have Grant) bool { return have.Digest == digest }
	if err := b.chats(c).Drop(c.Chat, is); err != nil {
		return err
	}
	stored, err := b.Everywhere()
	if err != nil || !slices.ContainsFunc(stored, is) {
		return err
	}
	return b.Store.Update(func(all []Grant) ([]Grant, error) { return slices.DeleteFunc(all, is), nil })
}

// Drop removes a grant from its chat.
func (b *Book) Drop(g InChat) error {
	is := func(have Grant) bool { return have.ID == g.ID }
	err := b.Chats.Drop(g.Chat, is)
	if b.Common != nil {
		err = errors.Join(err, b.Common.Drop(g.Chat, is))
	}
	return err
}

// ChangedSince returns the newest grant of a caller that is about the same as one that
// a call would need now, but does not cover it, and what changed since, in words. stored
// are the grants that hold in every chat. It voids the grants whose pack, tool or program
// is no longer what was approved. An error means that these could not be marked: they are
// bound to what changed, so they allow nothing now anyway.
func (b *Book) ChangedSince(c *call.Caller, needs []*Grant, stored []Grant, at time.Time) (since Grant, changed []string, err error) {
	// now returns the grant that g would have to be today, or nil if g is still
	// that grant or is about something else.
	now := func(g Grant) *Grant {
		i := slices.IndexFunc(needs, func(n *Grant) bool { return n.Subject == g.Subject && n.Digest != g.Digest })
		if i < 0 {
			return nil
		}
		return needs[i]
	}
	look := func(g Grant) {
		if n := now(g); n != nil && g.Since.After(since.Since) {
			since, changed = g, g.Changes(n)
		}
	}
	// void returns what ends g, or nil if g holds. A grant that is void stays as it
	// is.
	void := func(g Grant) *Void {
		if n := now(g); n != nil && g.Void == nil && g.contentChanged(n) {
			return &Void{At: at.UTC(), Changes: g.Changes(n)}
		}
		return g.Void
	}
	chats := b.chats(c)
	for _, g := range chats.Of(c.Chat) {
		look(g)
	}
	err = chats.Void(c.Chat, void)
	voids := false
	for _, g := range stored {
		look(g)
		voids = voids || void(g) != g.Void
	}
	if voids {
		err = errors.Join(err, b.Store.Update(func(all []Grant) ([]Grant, error) {
			for i, g := range all {
				all[i].Void = void(g)
			}
			return all, nil
		}))
	}
	return since, changed, err
}
