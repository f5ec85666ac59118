package chats

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// A Common keeps what replicas have in common of their chats, by the ids of these, until
// no replica has used a chat for as long as an unused chat lasts. It is a [store.Shelf].
type Common interface {
	// Sync returns when Known has everything that any replica saved before the call.
	Sync(ctx context.Context) error
	// Known returns what is kept of a chat, and its revision; 0 is the one of nothing.
	Known(chat string) (value []byte, rev uint64)
	// Latest is Known, as it is at this moment.
	Latest(ctx context.Context, chat string) (value []byte, rev uint64, err error)
	// Save keeps a value in place of the one with a revision, and returns its revision.
	// It reports false if another replica was faster.
	Save(ctx context.Context, chat string, value []byte, rev uint64) (now uint64, saved bool, err error)
}

const (
	// renewEvery is how often a replica says that it uses a chat: a quarter of the time
	// that an unused chat lasts.
	renewEvery = 15 * time.Minute
	// maxCommon bounds what is kept of a chat, in bytes. NATS refuses messages of 1 MiB.
	maxCommon = 768 << 10
	// commonTries is how often a change is made anew because another replica was faster.
	commonTries = 5
)

// A common is what replicas have in common of a chat.
type common struct {
	Enabled []enabled.Kept `json:"enabled,omitempty"`
	Own     attach.Set     `json:"own,omitzero"`
}

// CatchUp takes what other replicas did in the chat before the call. If the store cannot
// be reached, the chat stays as it is: the gate then decides nothing.
func (c *Chat) CatchUp(ctx context.Context) {
	if c.shared && c.all.opts.Common.Sync(ctx) == nil {
		c.meet(ctx)
	}
}

// meet takes what is known of the chat's changes by other replicas.
func (c *Chat) meet(ctx context.Context) {
	if !c.shared {
		return
	}
	kept := c.all.opts.Common
	c.sharing.Lock()
	defer c.sharing.Unlock()
	value, rev := kept.Known(c.id)
	if rev < c.rev {
		// It is gone, or this replica's own change is not known yet, or the store was set
		// back.
		var err error
		if value, rev, err = kept.Latest(ctx, c.id); err != nil {
			return
		}
	}
	if rev != c.rev {
		c.adopt(value, rev)
	}
	if rev != 0 && time.Since(c.renewed) > renewEvery {
		if now, saved, err := kept.Save(ctx, c.id, value, rev); err == nil && saved {
			c.rev, c.renewed = now, time.Now()
		}
	}
}

// adopt makes the chat what is kept of it. What another version wrote counts as nothing.
// The caller holds sharing.
func (c *Chat) adopt(value []byte, rev uint64) {
	var now common
	if len(value) > 0 && json.Unmarshal(value, &now) != nil {
		now = common{}
	}
	c.rev = rev
	c.Enabled.Restore(now.Enabled)
	c.mu.Lock()
	c.own, c.view = now.Own, nil
	c.mu.Unlock()
	c.all.change()
}

// Change lets edit change which tools are enabled and which packs are attached, on every
// replica. edit may be called again, when the chat is as another replica has made it
// meanwhile. If there is an error, nothing changed, or it is not known whether something
// did, and the next CatchUp finds out.
func (c *Chat) Change(ctx context.Context, edit func()) error {
	if !c.shared {
		edit()
		return nil
	}
	kept := c.all.opts.Common
	c.sharing.Lock()
	defer c.sharing.Unlock()
	for range commonTries {
		was, rev, err := kept.Latest(ctx, c.id)
		if err != nil {
			return unavailable()
		}
		c.adopt(was, rev)
		edit()
		c.mu.Lock()
		now, err := json.Marshal(common{Enabled: c.Enabled.Kept(), Own: c.own})
		c.mu.Unlock()
		switch {
		case err == nil && bytes.Equal(now, was):
			return nil
		case err == nil && len(now) > maxCommon:
			c.adopt(was, rev)
			return toolerr.New(toolerr.CodeToolListTooLarge, "Go on with the tools that are enabled.", "what was enabled and attached in this chat has no room for more")
		}
		saved, next := false, uint64(0)
		if err == nil {
			next, saved, err = kept.Save(ctx, c.id, now, rev)
		}
		if saved {
			c.rev, c.renewed = next, time.Now()
			return nil
		}
		c.adopt(was, rev)
		if err != nil {
			return unavailable()
		}
	}
	return unavailable()
}

func unavailable() error {
	return toolerr.New(toolerr.CodeStoreUnavailable, "Tell the user, who can tell the server's administrator; make the call again later.",
		"what is enabled and attached in this chat could not be stored for all servers")
}
