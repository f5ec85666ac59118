package server

import (
	"context"
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// sameAs makes sure that what was just read is what was approved, and that the pack
// is still attached, since digesting it may have taken a while. If all of the bytes
// were compared with the digest that the permit is for, the pack is not digested
// again. A person's answer does not require it either: after one, the whole call is
// prepared again (see [Server.askAndCheck]).
func (s *Server) sameAs(ctx context.Context, c *call, p *packs.Pack, permit *gate.Permit, compared bool) error {
	if s.isStillAttached(ctx, c, p) {
		if compared {
			return nil
		}
		if now, _, err := s.given.Facts(ctx, p); err == nil && now.Digest == permit.Digest() {
			return nil
		}
	}
	return changed(permit, p.ID)
}

// isStillAttached reports whether a pack of the call's Catalog is still attached as
// it was.
func (s *Server) isStillAttached(ctx context.Context, c *call, p *packs.Pack) bool {
	catalog := c.chat.Catalog(ctx)
	if catalog == c.catalog {
		return true
	}
	now := catalog.ByID(p.ID)
	return now != nil && now.Attached && now.Dir == p.Dir && now.AttachedSince.Equal(p.AttachedSince)
}

// changed withholds a permit because its pack changed, and records that.
func changed(permit *gate.Permit, packID string) error {
	return permit.Withhold(fmt.Sprintf("pack %q, or something else about the call, changed after it was allowed", packID),
		"Call again; the user will be asked about it as it is now.")
}
