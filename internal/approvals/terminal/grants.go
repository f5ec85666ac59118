package terminal

import (
	"context"
	"net/http"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

// Grants returns what holds in the server's chats, oldest first.
func (s *Server) Grants(ctx context.Context) ([]control.ChatGrant, error) {
	var list control.GrantList
	if err := s.do(ctx, http.MethodGet, control.PathGrants, nil, &list); err != nil {
		return nil, err
	}
	return control.SafeGrants(list.Grants), nil
}

// Revoke takes back the grant of a chat. If it returns a *[RefusedError], the grant
// holds, or there is none. After any other error it is not known whether it holds.
func (s *Server) Revoke(ctx context.Context, id string) error {
	return s.do(ctx, http.MethodPost, control.PathRevoke, control.Revocation{ID: id}, &struct{}{})
}
