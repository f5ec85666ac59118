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

	workspaces         *workspace.Set // which its programs write to
	*subscriptions.Set                // what its clients subscribe to

	runs   chan struct{} // holds a value for each program that runs
	server *Server

	following sync.Mutex // held while the client is told of changes, or a list is made for it; before mu

	mu        sync.Mutex
	client    string                  // name and version that the client gave
	enabled   map[string]*enabledPack // :: pack id → its enabled tools
	opened    map[string]string       // :: pack id → its digest when the model last saw its document
	enables   int                     // how many tools were enabled so far
	listeners []listener
	seen      *packs.Catalog // of the last call; see [Server.follow]
	told      string         // the tools that the client was last told about, or first given, see toolsPrint; empty: nothing
	listed    bool           // the client was given its tools
	stray     listSet        // lists of which the client was given another version since it was told
	own       attach.Set     // what a person attached and detached in this chat alone
	base      *packs.Catalog // what view was made from
	view      *packs.Catalog // the packs with own applied; nil: not made yet
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
		enabled: make(map[string]*enabledPack),
	}
	c.Set = subscriptions.NewSet(subscriptions.Options{
		Pace: s.pace, Person: c.person,
		Begin: func() subscriptions.Looker { return s.looker(c, s.catalog(context.Background(), c)) },
		Tell:  func(uri string) { c.tell(wire.Note{Method: mcp.MethodNotificationResourceUpdated, URI: uri}) },
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
func (c *chat) Listen(sess *wire.Session) { c.listen(sess) }

// Unlisten ends what Listen began.
func (c *chat) Unlisten(sess *wire.Session) { c.unlisten(sess) }

func (c *chat) listen(l listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.listeners, l) {
		c.listeners = append(c.listeners, l)
	}
}

func (c *chat) unlisten(l listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = slices.DeleteFunc(c.listeners, func(have listener) bool { return have == l })
}

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
