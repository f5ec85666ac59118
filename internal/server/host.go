package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// This is what the transports need of a server. That over HTTP has methods of its own,
// which are below.
var _ wire.Host = (*Server)(nil)

// Open begins a chat of a client.
func (s *Server) Open(of wire.Client) (wire.Chat, error) {
	c, err := s.newChat(of)
	if err != nil {
		return nil, err // and not a chat that is nil
	}
	return c, nil
}

// Redact takes out of a text what opens this server to somebody.
func (s *Server) Redact(text string) string { return s.tokens.Hide(text) }

// MaxMessage is how many bytes one message may have.
func (s *Server) MaxMessage() int { return s.limits.Request }

// Logger is where the transports log.
func (s *Server) Logger() *slog.Logger { return s.logger }

// SharedWorkspace is the one workspace of every chat; empty when each has its own.
func (s *Server) SharedWorkspace() string { return s.opts.Workspace }

// OverHTTP notes for a request's spans how it came.
func (s *Server) OverHTTP(ctx context.Context, h http.Header) context.Context {
	return s.opts.Spans.OverHTTP(ctx, h)
}
