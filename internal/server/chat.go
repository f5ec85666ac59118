package server

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A chat is one conversation: what was enabled in it, its workspace, and who
// wants to hear when its lists change. Over stdio and HTTP+SSE it is the
// connection; over Streamable HTTP the session, or, since 2026-07-28, everything
// with one token.
type chat struct {
	id     string // opaque; grants belong to it
	person string // whose it is, over HTTP with a token for each; empty otherwise
	origin gate.Origin
	ends   string // when it ends, in words: "until this client closes"

	workspaces *workspace.Set // which its programs write to

	runs   chan struct{} // a place for each program that runs
	server *Server
	over   chan struct{} // closed when the chat ends

	following sync.Mutex // held while the client is told of changes, or a list is made for it; before mu

	mu          sync.Mutex
	client      string                  // name and version that the client gave
	enabled     map[string]*enabledPack // :: pack id → its enabled tools
	opened      map[string]string       // :: pack id → its digest when the model saw its document last
	enables     int                     // tools that were enabled so far
	listeners   []listener
	seen        *packs.Catalog  // of the last call; see [Server.follow]
	told        string          // the tools that the client was told of last, or given first, see toolsPrint; empty: nothing
	listed      bool            // the client was given its tools
	stray       listSet         // of which the client was given others since it was told
	watched     map[string]look // :: URI of a resource that somebody subscribed to → how it was
	subscribers map[string]int  // :: such a URI → how many clients did
	listens     int             // streams of 2026-07-28 that are open for news
	watching    chan struct{}   // closed when the goroutine that looks at watched ends; nil: none
	isOver      bool
	own         attach.Set     // what a person attached and detached in this chat alone
	base        *packs.Catalog // what view was made from
	view        *packs.Catalog // the packs with own; nil: to be made
}

// newChat starts a chat of a client.
func (s *Server) newChat(of wire.Client) (*chat, error) {
	own, err := workspace.NewSet(workspace.Place{Each: s.opts.Workspaces, Shared: s.opts.Workspace})
	if err != nil {
		return nil, err
	}
	c := &chat{
		id: of.Transport + "-" + rand.Text()[:16], person: of.Person, origin: of.Origin, ends: of.Ends, workspaces: own,
		runs: make(chan struct{}, s.limits.Runs), server: s, over: make(chan struct{}),
		enabled: make(map[string]*enabledPack),
	}
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

// Close forgets a chat whose calls have ended, but for what is in its workspaces.
func (c *chat) Close() {
	s := c.server
	s.opts.Gate.EndChat(c.id)
	s.mu.Lock()
	s.chats = slices.DeleteFunc(s.chats, func(have *chat) bool { return have == c })
	s.mu.Unlock()
	s.change()
	c.end()
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

// Listen has a session told of what changes in its chat, until Unlisten.
func (c *chat) Listen(sess *wire.Session) { c.listen(sess) }

// Unlisten has a session told of nothing more.
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

// takeRun waits for a place to run a program in, in order, and returns what
// gives the place back.
func (c *chat) takeRun(ctx context.Context) (release func(), err error) {
	select {
	case c.runs <- struct{}{}:
		return func() { <-c.runs }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errNoChat is about a chat that has ended, or never was.
var errNoChat = errors.New("this chat has ended")
