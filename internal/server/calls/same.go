package calls

import (
	"context"
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// SameAs makes sure that what was just read is what was approved, and that the pack
// is still attached, since digesting it may have taken a while. If all of the bytes
// were compared with the digest that the permit is for, the pack is not digested
// again. A person's answer does not require it either: after one, the whole call is
// prepared again (see [Road.Decide]).
func (r *Road) SameAs(ctx context.Context, c *Call, p *packs.Pack, permit *gate.Permit, compared bool) error {
	if r.isStillAttached(ctx, c, p) {
		if compared {
			return nil
		}
		if now, _, err := r.opts.Given.Facts(ctx, p); err == nil && now.Digest == permit.Digest() {
			return nil
		}
	}
	return Changed(permit, p.ID)
}

// isStillAttached reports whether a pack of the call's Catalog is still attached as
// it was.
func (r *Road) isStillAttached(ctx context.Context, c *Call, p *packs.Pack) bool {
	catalog := c.Chat.Catalog(ctx)
	if catalog == c.Catalog {
		return true
	}
	now := catalog.ByID(p.ID)
	return now != nil && now.Attached && now.Dir == p.Dir && now.AttachedSince.Equal(p.AttachedSince)
}

// Changed withholds a permit because its pack changed, and records that.
func Changed(permit *gate.Permit, packID string) error {
	return permit.Withhold(fmt.Sprintf("pack %q, or something else about the call, changed after it was allowed", packID),
		"Call again; the user will be asked about it as it is now.")
}
