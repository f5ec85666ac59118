package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The transports need these methods of a server. The HTTP transport needs a few more,
// at the end of this file.
var _ wire.Host = (*Server)(nil)

// Open begins a chat for a client.
func (s *Server) Open(of wire.Client) (wire.Chat, error) {
	c, err := s.chats.Open(of)
	if err != nil {
		return nil, err // a nil interface, not a nil *chats.Chat in one
	}
	return c, nil
}

// Redact removes from a text the tokens that give access to this server.
func (s *Server) Redact(text string) string { return s.tokens.Hide(text) }

// MaxMessage is how many bytes one message may have.
func (s *Server) MaxMessage() int { return s.limits.Request }

// Logger is where the transports log.
func (s *Server) Logger() *slog.Logger { return s.logger }

// SharedWorkspace returns the one workspace of every chat; empty if each chat has its
// own.
func (s *Server) SharedWorkspace() string { return s.opts.Workspace }

// Drain ends the waits of calls for persons, now and from now on. Their questions stay
// open, as if nobody had answered in time.
func (s *Server) Drain() { s.drain() }

// OverHTTP records in a request's spans that it came over HTTP.
func (s *Server) OverHTTP(ctx context.Context, h http.Header) context.Context {
	return s.opts.Spans.OverHTTP(ctx, h)
}
