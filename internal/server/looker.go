package server

import (
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
)

// looker returns the function that looks at the files of resources, under the chat's
// Catalog.
func (s *Server) looker(c *chat, catalog *packs.Catalog) subscriptions.Looker {
	return func(u address.URI) (subscriptions.Look, error) {
		if u.Scheme == address.SchemeWorkspace {
			handle, inside, ok := cutHandle(u.Path)
			sp := c.workspaces.Named(handle)
			if !ok || sp == nil || !s.offer.MayReadWorkspaces() {
				return subscriptions.Look{}, address.ErrNoResource
			}
			dir, err := sp.Open()
			if err != nil {
				return subscriptions.Look{}, address.ErrNoResource
			}
			defer dir.Close()
			return subscriptions.LookAt(dir, inside)
		}
		for _, at := range address.Places(catalog, u) {
			dir, err := at.Pack.OpenDir()
			if err != nil {
				continue
			}
			if s.given.KeepsOut(at.Pack) != nil || !s.offer.MayGive(at) {
				dir.Close()
				continue
			}
			l, err := subscriptions.LookAt(dir, at.Path)
			dir.Close()
			if err == nil {
				return l, nil
			}
		}
		return subscriptions.Look{}, address.ErrNoResource
	}
}
