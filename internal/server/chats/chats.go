package chats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A Library returns the packs as they are now.
type Library interface {
	Catalog(context.Context) *packs.Catalog
}

// A Gate is told when chats end. Abandon says that the client of a chat is gone, and
// EndChat that its calls have ended as well. LeaveChat is in place of EndChat for a chat
// that other replicas may go on with.
type Gate interface {
	Abandon(chat string)
	EndChat(chat string)
	LeaveChat(chat string)
}

// Options are what [Chats] are made of. All but Shared and Common are required.
type Options struct {
	Library    Library
	Gate       Gate
	Workspaces workspace.Place
	// Shared returns the id of the chat of a credential, if several replicas go on with
	// one chat; nil: this server is alone. Common is what they have in common of these
	// chats.
	Shared   func(credential string) string
	Common   Common
	Runs     int // programs of one chat at a time
	Offer    *offer.Offer
	KeepsOut func(*packs.Pack) error // why nothing of a pack may be given; nil if it may
	Pace     *subscriptions.Pace
	Lists    *lists.Shared
	Tools    func(*packs.Catalog, *Chat) []mcp.Tool // the list of a chat's tools
	Other    func(now *packs.Catalog)               // called when Follow sees another Catalog than before
}

// Chats are the chats of a server that have not ended. They are safe for concurrent
// use.
type Chats struct {
	opts Options

	mu      sync.Mutex
	open    []*Chat
	shown   *packs.Catalog // the Catalog that Follow last saw
	changed chan struct{}  // closed when chats, or the packs of one, change; nil: nobody waits for it
}

// New returns Chats without any.
func New(o Options) *Chats { return &Chats{opts: o} }

func (a *Chats) add(c *Chat) {
	a.mu.Lock()
	a.open = append(a.open, c)
	a.mu.Unlock()
	a.change()
}

func (a *Chats) drop(c *Chat) {
	a.mu.Lock()
	a.open = slices.DeleteFunc(a.open, func(have *Chat) bool { return have == c })
	a.mu.Unlock()
	a.change()
}

// All returns the chats, sorted by id.
func (a *Chats) All() []*Chat {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Clone(a.open)
	slices.SortFunc(all, func(a, b *Chat) int { return strings.Compare(a.id, b.id) })
	return all
}

// errNoChat is returned for a chat that has ended, or never existed.
var errNoChat = errors.New("this chat has ended")

func (a *Chats) named(id string) (*Chat, error) {
	for _, c := range a.All() {
		if c.id == id {
			return c, nil
		}
	}
	return nil, errNoChat
}

// Changes returns a channel that is closed at the next change of the chats or their
// packs.
func (a *Chats) Changes() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

func (a *Chats) change() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// Follow tells the client of every chat which of its lists have changed, after a look
// at the packs. It does not wait for any client, and stops when ctx ends.
func (a *Chats) Follow(ctx context.Context) {
	now := a.opts.Library.Catalog(ctx)
	a.mu.Lock()
	before := a.shown
	a.shown = now
	a.mu.Unlock()
	if before != now {
		a.opts.Other(now)
		a.change()
	}
	a.opts.Lists.LookAgain()
	for _, c := range a.All() {
		c.meet(ctx)
		if ctx.Err() == nil && c.Lists.HasSeen() {
			c.Lists.Follow(ctx)
		}
	}
}

// Catalog returns the packs as a request's chat has them.
func (a *Chats) Catalog(ctx context.Context) *packs.Catalog {
	now := a.opts.Library.Catalog(ctx)
	if c, _, ok := Of(ctx); ok {
		return c.viewOf(now)
	}
	return now
}

// SetAttached attaches a pack to one chat, or detaches it, until the chat ends. It
// does not change what every new chat starts with.
func (a *Chats) SetAttached(ctx context.Context, chatID, packID string, on bool) error {
	c, p, err := a.attachable(ctx, chatID, packID, on)
	if err != nil || p.Attached == on {
		return err
	}
	before := c.Catalog(ctx)
	err = c.Change(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.own = c.own.Clone()
		if on {
			c.own.Attach(p.ID, attach.Entry{Dir: p.Dir, Since: time.Now().UTC()})
		} else {
			c.own.Detach(p.ID, time.Now().UTC())
		}
		c.view = nil
	})
	if err != nil {
		return err
	}
	c.Lists.Saw(before)
	c.Lists.Follow(ctx)
	a.change()
	return nil
}

// CanAttach returns why SetAttached would refuse, or nil if it would not.
func (a *Chats) CanAttach(ctx context.Context, chatID, packID string, on bool) error {
	_, _, err := a.attachable(ctx, chatID, packID, on)
	return err
}

func (a *Chats) attachable(ctx context.Context, chatID, packID string, on bool) (*Chat, *packs.Pack, error) {
	c, err := a.named(chatID)
	if err != nil {
		return nil, nil, err
	}
	c.CatchUp(ctx)
	p, err := c.Catalog(ctx).Lookup(packID)
	if err == nil && on && !p.Valid {
		err = fmt.Errorf("pack %q is not valid; packs-mcp validate says what to mend", p.ID)
	}
	return c, p, err
}

// OpenArtifact opens a regular file of a chat's workspaces, by the path of a
// [workspace.File].
func (a *Chats) OpenArtifact(chatID, name string) (io.ReadSeekCloser, workspace.File, error) {
	c, err := a.named(chatID)
	if err != nil {
		return nil, workspace.File{}, err
	}
	return c.Workspaces.OpenFile(name)
}
