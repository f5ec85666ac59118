package sources

import (
	"context"
	"errors"
)

// Open opens a source in the state that it has now. What is fetched is gone with the
// snapshot's Close. What a killed process had fetched, package temp removes.
func Open(ctx context.Context, w *Web, r Reference) (Snapshot, error) {
	switch r.Kind {
	case Folder:
		return OpenFolder(r.At)
	case Archive:
		return OpenArchive(r.At, r.Sum)
	case Git:
		return OpenGit(ctx, w, r)
	case OCI:
		return OpenOCI(ctx, w, r)
	case Site:
		return OpenSite(ctx, w, r)
	case Stakpak:
		return OpenRulebook(ctx, w, r)
	}
	return nil, errors.New("packs cannot come from this kind of source yet")
}
