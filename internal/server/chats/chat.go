// Package chats keeps the chats of a server: what a person attached in one, what was
// enabled in it, its workspaces, its listeners. Nothing of one chat is visible in
// another.
//
// It answers no request, and asks nobody: package gate decides about calls.
package chats

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A Chat is one conversation: what was enabled in it, its workspaces, and its
// listeners. Over stdio and HTTP+SSE it is the connection. Over Streamable HTTP it is
// the session or, since 2026-07-28, everything with one token. It is safe for
// concurrent use.
type Chat struct {
	Person string // the person it belongs to, over HTTP with a token for each; empty otherwise
	Origin call.Origin
	Ends   string // when it ends, in words: "until this client closes"

	Workspaces         *workspace.Set  // which its programs write to
	*subscriptions.Set                 // what its clients subscribe to
	Lists              *lists.Follower // which its client has
	Enabled            enabled.Tools

	id     string        // opaque; grants belong to it
	shared bool          // other replicas may go on with it
	runs   chan struct{} // holds a value for each program that runs
	all    *Chats

	sharing sync.Mutex // held while what replicas have in common changes; before mu
	rev     uint64     // of what they have in common, as it is here; sharing guards it
	renewed time.Time  // when this replica last saved it; sharing guards it

	mu     sync.Mutex
	client string            // name and version that the client gave
	opened map[string]string // :: pack id → its digest when the model last saw its document
	own    attach.Set        // what a person attached and detached in this chat alone
	base   *packs.Catalog    // what view was made from
	view   *packs.Catalog    // the packs with own applied; nil: not made yet
}

// Open begins a chat for a client.
func (a *Chats) Open(of wire.Client) (*Chat, error) {
	id, shared, at := rand.Text()[:16], false, a.opts.Workspaces
	if a.opts.Shared != nil && of.Credential != "" {
		id, shared = a.opts.Shared(of.Credential), true
		at.First = id
	}
	own, err := workspace.NewSet(at)
	if err != nil {
		return nil, err
	}
	c := &Chat{
		id: of.Transport + "-" + id, shared: shared, Person: of.Person, Origin: of.Origin, Ends: of.Ends, Workspaces: own,
		runs: make(chan struct{}, a.opts.Runs), all: a,
	}
	c.Lists = lists.NewFollower(c, a.opts.Lists)
	c.Set = subscriptions.NewSet(subscriptions.Options{
		Pace: a.opts.Pace, Person: c.Person,
		Begin: func() subscriptions.Looker { return a.looker(c, c.Catalog(context.Background())) },
		Tell:  func(uri string) { c.Lists.Tell(wire.Note{Method: mcp.MethodNotificationResourceUpdated, URI: uri}) },
	})
	a.add(c)
	return c, nil
}

// Of returns the chat that a request belongs to. Every transport puts a session of its
// own into the context.
func Of(ctx context.Context) (*Chat, *wire.Session, bool) {
	sess, ok := mcpserver.ClientSessionFromContext(ctx).(*wire.Session)
	if !ok {
		return nil, nil, false
	}
	c, ok := sess.Chat().(*Chat)
	return c, sess, ok
}

// ID is the chat's id, which logs and clients may see.
func (c *Chat) ID() string { return c.id }

// Shared reports whether other replicas may go on with the chat.
func (c *Chat) Shared() bool { return c.shared }

// Abandon says that the chat's client is gone, though its calls may still end.
func (c *Chat) Abandon() { c.all.opts.Gate.Abandon(c.id) }

// Close drops a chat whose calls have ended. The files in its workspaces stay.
func (c *Chat) Close() {
	if c.shared {
		c.all.opts.Gate.LeaveChat(c.id)
	} else {
		c.all.opts.Gate.EndChat(c.id)
	}
	c.all.drop(c)
	c.Set.Close()
	c.Workspaces.Close()
}

// Listen tells a session about changes in its chat, until Unlisten.
func (c *Chat) Listen(sess *wire.Session) { c.Lists.Listen(sess) }

// Unlisten ends what Listen began.
func (c *Chat) Unlisten(sess *wire.Session) { c.Lists.Unlisten(sess) }

// Catalog returns the packs as they are now, with what is attached to this chat.
func (c *Chat) Catalog(ctx context.Context) *packs.Catalog {
	return c.viewOf(c.all.opts.Library.Catalog(ctx))
}

// viewOf returns a Catalog with what is attached to this chat.
func (c *Chat) viewOf(now *packs.Catalog) *packs.Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == nil || c.base != now {
		c.base, c.view = now, now.With(c.own)
	}
	return c.view
}

// Tools returns all tools of the chat under a Catalog.
func (c *Chat) Tools(catalog *packs.Catalog) []mcp.Tool { return c.all.opts.Tools(catalog, c) }

// HasOwnPacks reports whether a person attached or detached something in this chat
// alone.
func (c *Chat) HasOwnPacks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.own.Attached)+len(c.own.Detached) > 0
}

// HasOwnTools reports whether the chat enabled tools, which may be gone by now.
func (c *Chat) HasOwnTools() bool { return c.Enabled.Any() }

// TakeRun waits until the chat may run one more program, in order of arrival. It
// returns the function that gives the place back.
func (c *Chat) TakeRun(ctx context.Context) (release func(), err error) {
	select {
	case c.runs <- struct{}{}:
		return func() { <-c.runs }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Client returns what the chat's client calls itself; empty if it did not say.
func (c *Chat) Client() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// SetClient remembers what the chat's client calls itself.
func (c *Chat) SetClient(name string) {
	c.mu.Lock()
	other := c.client != name
	c.client = name
	c.mu.Unlock()
	if other {
		c.all.change()
	}
}

// SinceOpened says, once, that a pack has changed since the model saw its document.
// opens reports whether the model sees the document now.
func (c *Chat) SinceOpened(pack call.Pack, opens bool) (note string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.opened[pack.ID]
	if !opens && (!known || was == pack.Digest) {
		return ""
	}
	if c.opened == nil {
		c.opened = make(map[string]string)
	}
	c.opened[pack.ID] = pack.Digest
	if opens {
		return ""
	}
	return fmt.Sprintf("Pack %s changed since you opened it. Open it again before you rely on its documents.", pack.ID)
}
