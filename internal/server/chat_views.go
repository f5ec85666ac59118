package server

import (
	"context"
	"io"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/finder"
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
	for _, c := range s.chats.All() {
		all = append(all, s.chatView(ctx, c))
	}
	return all
}

func (s *Server) chatView(ctx context.Context, c *chats.Chat) ChatView {
	compiled := 0 // packs whose tools were read: for many packs that takes long
	r := ChatView{Chat: c.ID(), Client: safetext.Line(c.Client()), Person: safetext.Line(c.Person), Ends: c.Ends, Artifacts: c.Workspaces.Files(ctx)}
	for _, p := range c.Catalog(ctx).All() {
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

// Changes returns a channel that is closed at the next change of the chats or their
// packs.
func (s *Server) Changes() <-chan struct{} { return s.chats.Changes() }

// SetAttached attaches a pack to one chat, or detaches it, until the chat ends. It
// does not change what every new chat starts with.
func (s *Server) SetAttached(ctx context.Context, chatID, packID string, on bool) error {
	return s.chats.SetAttached(ctx, chatID, packID, on)
}

// CanAttach returns why SetAttached would refuse, or nil if it would not.
func (s *Server) CanAttach(ctx context.Context, chatID, packID string, on bool) error {
	return s.chats.CanAttach(ctx, chatID, packID, on)
}

// OpenArtifact opens a regular file of a chat's workspaces, by the path of a
// [workspace.File].
func (s *Server) OpenArtifact(chatID, name string) (io.ReadSeekCloser, workspace.File, error) {
	return s.chats.OpenArtifact(chatID, name)
}

// Prepare makes the index for the first query; see [finder.Finder.Prepare].
func (s *Server) Prepare(ctx context.Context, store finder.Store) error {
	return s.finder.Prepare(ctx, store)
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
func (s *Server) Refresh(ctx context.Context) { s.chats.Follow(ctx) }
