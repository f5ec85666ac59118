package chats

import (
	"path"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
)

// looker returns the function that looks at the files of resources, under a Catalog
// of the chat.
func (a *Chats) looker(c *Chat, catalog *packs.Catalog) subscriptions.Looker {
	return func(u address.URI) (subscriptions.Look, error) {
		if u.Scheme == address.SchemeWorkspace {
			handle, inside, ok := CutHandle(u.Path)
			sp := c.Workspaces.Named(handle)
			if !ok || sp == nil || !a.opts.Offer.MayReadWorkspaces() {
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
			if a.opts.KeepsOut(at.Pack) != nil || !a.opts.Offer.MayGive(at) {
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

// CutHandle splits the path of a workspace's URI into the handle and the path inside,
// "." for the top.
func CutHandle(at string) (handle, inside string, ok bool) {
	handle, inside, _ = strings.Cut(at, "/")
	return handle, path.Clean(inside), handle != ""
}
