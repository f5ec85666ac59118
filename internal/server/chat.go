package server

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A chat is one conversation: what was enabled in it, its workspaces, and its
// listeners. Over stdio and HTTP+SSE it is the connection. Over Streamable HTTP it is
// the session or, since 2026-07-28, everything with one token.
type chat struct {
	id     string // opaque; grants belong to it
	person string // the person it belongs to, over HTTP with a token for each; empty otherwise
	origin gate.Origin
	ends   string // when it ends, in words: "until this client closes"

	workspaces         *workspace.Set  // which its programs write to
	*subscriptions.Set                 // what its clients subscribe to
	lists              *lists.Follower // which its client has
	enabled            enabled.Tools

	runs   chan struct{} // holds a value for each program that runs
	server *Server

	mu     sync.Mutex
	client string            // name and version that the client gave
	opened map[string]string // :: pack id → its digest when the model last saw its document
	own    attach.Set        // what a person attached and detached in this chat alone
	base   *packs.Catalog    // what view was made from
	view   *packs.Catalog    // the packs with own applied; nil: not made yet
}

// newChat starts a chat for a client.
func (s *Server) newChat(of wire.Client) (*chat, error) {
	own, err := workspace.NewSet(workspace.Place{Each: s.opts.Workspaces, Shared: s.opts.Workspace})
	if err != nil {
		return nil, err
	}
	c := &chat{
		id: of.Transport + "-" + rand.Text()[:16], person: of.Person, origin: of.Origin, ends: of.Ends, workspaces: own,
		runs: make(chan struct{}, s.limits.Runs), server: s,
	}
	c.lists = lists.NewFollower(c, s.shared)
	c.Set = subscriptions.NewSet(subscriptions.Options{
		Pace: s.pace, Person: c.person,
		Begin: func() subscriptions.Looker { return s.looker(c, s.catalog(context.Background(), c)) },
		Tell:  func(uri string) { c.lists.Tell(wire.Note{Method: mcp.MethodNotificationResourceUpdated, URI: uri}) },
	})
	s.mu.Lock()
	s.chats = append(s.chats, c)
	s.mu.Unlock()
	s.change()
	return c, nil
}

// ID is the chat's id, which logs and clients may see.
func (c *chat) ID() string { return c.id }

// Abandon says that the chat's client is gone, though its calls may still end.
func (c *chat) Abandon() { c.server.opts.Gate.Abandon(c.id) }

// Close drops a chat whose calls have ended. The files in its workspaces stay.
func (c *chat) Close() {
	s := c.server
	s.opts.Gate.EndChat(c.id)
	s.mu.Lock()
	s.chats = slices.DeleteFunc(s.chats, func(have *chat) bool { return have == c })
	s.mu.Unlock()
	s.change()
	c.Set.Close()
	c.workspaces.Close()
}

// chatOf returns the chat that a request belongs to. Every transport puts a
// session of its own into the context.
func chatOf(ctx context.Context) (*chat, *wire.Session, bool) {
	sess, ok := mcpserver.ClientSessionFromContext(ctx).(*wire.Session)
	if !ok {
		return nil, nil, false
	}
	ch, ok := sess.Chat().(*chat)
	return ch, sess, ok
}

// Listen tells a session about changes in its chat, until Unlisten.
func (c *chat) Listen(sess *wire.Session) { c.lists.Listen(sess) }

// Unlisten ends what Listen began.
func (c *chat) Unlisten(sess *wire.Session) { c.lists.Unlisten(sess) }

// Catalog returns the packs as they are now, with what is attached to this chat.
func (c *chat) Catalog(ctx context.Context) *packs.Catalog { return c.server.catalog(ctx, c) }

// Tools returns all tools of the chat under a Catalog.
func (c *chat) Tools(catalog *packs.Catalog) []mcp.Tool { return c.server.tools(catalog, c) }

// HasOwnPacks reports whether a person attached or detached something in this chat
// alone.
func (c *chat) HasOwnPacks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.own.Attached)+len(c.own.Detached) > 0
}

// HasOwnTools reports whether the chat enabled tools, which may be gone by now.
func (c *chat) HasOwnTools() bool { return c.enabled.Any() }

// takeRun waits until the chat may run one more program, in order of arrival. It
// returns the function that gives the place back.
func (c *chat) takeRun(ctx context.Context) (release func(), err error) {
	select {
	case c.runs <- struct{}{}:
		return func() { <-c.runs }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNoChat is returned for a chat that has ended, or never existed.
var errNoChat = errors.New("this chat has ended")
