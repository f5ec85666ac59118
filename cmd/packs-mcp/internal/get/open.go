package get

import (
	"context"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/archive"
	"github.com/packs-mcp/packs-mcp/internal/sources/git"
	"github.com/packs-mcp/packs-mcp/internal/sources/oci"
	"github.com/packs-mcp/packs-mcp/internal/sources/rulebook"
	"github.com/packs-mcp/packs-mcp/internal/sources/site"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// openSource opens a source of any kind, in its current version. Closing the snapshot
// removes what was fetched. Package temp removes what killed processes fetched.
func openSource(ctx context.Context, w *web.Access, r address.Reference) (sources.Snapshot, error) {
	switch r.Kind {
	case address.Folder:
		return sources.OpenFolder(r.At)
	case address.Archive:
		return archive.Open(r.At, r.Sum)
	case address.Git:
		return git.Open(ctx, w, r)
	case address.OCI:
		return oci.Open(ctx, w, r)
	case address.Site:
		return site.Open(ctx, w, r)
	case address.Stakpak:
		return rulebook.Open(ctx, w, r)
	}
	return nil, errors.New("packs cannot come from this kind of source yet")
}
