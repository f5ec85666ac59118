package server

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A ChatView is what a person may see of one chat, and change in it, besides its
// calls. All its texts are safe to show.
type ChatView struct {
	Chat      string // opaque id
	Client    string // name and version that the client gave; may be empty
	Person    string // whose token it is, over HTTP; empty: no particular person. Not the client's words
	Ends      string // when it ends, in words
	Packs     []PackView
	Artifacts []workspace.File
}

// A PackView is a pack that is attached to a chat, or can be.
type PackView struct {
	ID, Name, Description string
	Trust                 string // in words
	Attached              bool
	Problems              []string
}

// maxViewPacks is how many packs that are not attached a [ChatView] can hold.
const maxViewPacks = 500

// ChatViews returns a view of every chat, sorted by id.
func (s *Server) ChatViews(ctx context.Context) []ChatView {
	var all []ChatView
	for _, c := range s.everyChat() {
		all = append(all, s.chatView(ctx, c))
	}
	return all
}

// Changes returns a channel that is closed at the next change of the chats or their
// packs.
func (s *Server) Changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Ready prepares the index for the next query, one step at a time, and reports
// whether there may be more to do. Call it when nothing else is going on; see
// [finder.Finder.Ready].
func (s *Server) Ready(ctx context.Context) (did bool) { return s.finder.Ready(ctx) }

// Refresh tells the client of every chat which of its lists have changed since it was
// told or given them. The watcher of the folders calls Refresh after each look, even
// if the look found nothing different: a list of tools is made from the files as they
// are at that moment, and they may have been different between two looks. Refresh
// does not wait for any client. It stops when ctx ends.
func (s *Server) Refresh(ctx context.Context) {
	now := s.opts.Library.Catalog(ctx)
	s.changeTo(now)
	s.shared.LookAgain()
	for _, c := range s.everyChat() {
		if ctx.Err() == nil && c.lists.HasSeen() {
			c.lists.Follow(ctx)
		}
	}
}

// changeTo calls change if now is not the Catalog that it was last called with.
func (s *Server) changeTo(now *packs.Catalog) {
	s.mu.Lock()
	before := s.shown
	s.shown = now
	s.mu.Unlock()
	if before != now {
		s.files.Forget(now)
		s.change()
	}
}

func (s *Server) change() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *Server) everyChat() []*chat {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.chats)
	slices.SortFunc(all, func(a, b *chat) int { return strings.Compare(a.id, b.id) })
	return all
}

func (s *Server) chatView(ctx context.Context, c *chat) ChatView {
	c.mu.Lock()
	client := c.client
	c.mu.Unlock()
	compiled := 0 // packs whose tools were read: for many packs that takes long
	r := ChatView{Chat: c.id, Client: safetext.Line(client), Person: safetext.Line(c.person), Ends: c.ends, Artifacts: c.workspaces.Files(ctx)}
	for _, p := range s.catalog(ctx, c).All() {
		if p.ShadowedBy != "" || !p.Offered {
			continue
		}
		// All attached packs are included, however many others there are.
		if len(r.Packs) >= maxViewPacks && !p.Attached {
			continue
		}
		rp := PackView{
			ID: safetext.Line(p.ID), Name: safetext.Line(p.Name), Description: s.offer.Describe(p.Description),
			Trust: gate.Trust(p.Trust).Words(), Attached: p.Attached,
		}
		problems := p.Problems
		// Do this even if there is no tool file: an entry document may declare tools.
		if p.Attached && p.Valid && compiled < maxViewPacks {
			compiled++
			_, problems = s.inspect(p)
		}
		rp.Problems = lines(problems)
		r.Packs = append(r.Packs, rp)
	}
	return r
}

// named remembers what a chat's client calls itself.
func (s *Server) named(c *chat, client string) {
	c.mu.Lock()
	other := c.client != client
	c.client = client
	c.mu.Unlock()
	if other {
		s.change()
	}
}

func (s *Server) chatNamed(id string) (*chat, error) {
	for _, c := range s.everyChat() {
		if c.id == id {
			return c, nil
		}
	}
	return nil, errNoChat
}

// SetAttached attaches a pack to one chat, or detaches it, until the chat ends. It
// does not change what every new chat starts with.
func (s *Server) SetAttached(ctx context.Context, chatID, packID string, on bool) error {
	c, p, err := s.attachable(ctx, chatID, packID, on)
	if err != nil || p.Attached == on {
		return err
	}
	before := s.catalog(ctx, c)
	c.mu.Lock()
	c.own = c.own.Clone()
	if on {
		c.own.Attach(p.ID, attach.Entry{Dir: p.Dir, Since: time.Now().UTC()})
	} else {
		c.own.Detach(p.ID, time.Now().UTC())
	}
	c.view = nil
	c.mu.Unlock()
	c.lists.Saw(before)
	c.lists.Follow(ctx)
	s.change()
	return nil
}

// CanAttach returns why SetAttached would refuse, or nil if it would not.
func (s *Server) CanAttach(ctx context.Context, chatID, packID string, on bool) error {
	_, _, err := s.attachable(ctx, chatID, packID, on)
	return err
}

func (s *Server) attachable(ctx context.Context, chatID, packID string, on bool) (*chat, *packs.Pack, error) {
	c, err := s.chatNamed(chatID)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.catalog(ctx, c).Lookup(packID)
	if err == nil && on && !p.Valid {
		err = fmt.Errorf("pack %q is not valid; packs-mcp validate says what to mend", p.ID)
	}
	return c, p, err
}

// catalog returns the packs as they are now, with what is attached to this chat. A
// nil chat has attached nothing of its own.
func (s *Server) catalog(ctx context.Context, c *chat) *packs.Catalog {
	now := s.opts.Library.Catalog(ctx)
	if c == nil {
		return now
	}
	return c.viewOf(now)
}

// viewOf returns a Catalog with what is attached to this chat.
func (c *chat) viewOf(now *packs.Catalog) *packs.Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == nil || c.base != now {
		c.base, c.view = now, now.With(c.own)
	}
	return c.view
}

// catalogOf returns the packs as the request's chat has them.
func (s *Server) catalogOf(ctx context.Context) *packs.Catalog {
	c, _, _ := chatOf(ctx)
	return s.catalog(ctx, c)
}

// OpenArtifact opens a regular file of a chat's workspaces, by the path of a
// [workspace.File].
func (s *Server) OpenArtifact(chatID, name string) (io.ReadSeekCloser, workspace.File, error) {
	c, err := s.chatNamed(chatID)
	if err != nil {
		return nil, workspace.File{}, err
	}
	return c.workspaces.OpenFile(name)
}
