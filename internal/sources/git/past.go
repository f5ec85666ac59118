package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// Follows reports whether a commit is in the history of this one. It asks a remote
// repository for the commits since then: the old one is in the history exactly if it
// is a parent of one of these.
func (r *repository) Follows(ctx context.Context, pin string) (bool, error) {
	old := plumbing.NewHash(strings.TrimPrefix(pin, "git:"))
	if old == r.commit.hash {
		return true, nil
	}
	if r.connect == nil {
		return isBefore(ctx, r.store, old, r.commit)
	}
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	session, err := r.connect(ctx)
	if err != nil {
		return false, err
	}
	defer session.Close()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return false, err
	}
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Wants, req.Haves = []plumbing.Hash{r.commit.hash}, []plumbing.Hash{old}
	if adv.Capabilities.Supports(capability.Filter) {
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return false, err
		}
		req.Filter = packp.FilterTreeDepth(0) // commits only
	}
	dir, err := temp.New("")
	if err != nil {
		return false, err
	}
	defer dir.Remove()
	store, known, err := receive(ctx, session, req, dir.Path)
	if store != nil {
		defer store.Close()
	}
	if err != nil {
		return false, fmt.Errorf("asking for the history since %s: %w", old, err)
	}
	if !slices.Contains(known, old) { // the repository no longer has the commit
		return false, nil
	}
	return hasParent(store, old)
}

// hasParent reports whether a commit of the store has this parent.
func hasParent(store storer.EncodedObjectStorer, parent plumbing.Hash) (found bool, err error) {
	all, err := store.IterEncodedObjects(plumbing.CommitObject)
	if err != nil {
		return false, err
	}
	err = all.ForEach(func(o plumbing.EncodedObject) error {
		c, err := parseCommit(o)
		if err != nil {
			return err
		}
		if slices.Contains(c.parents, parent) {
			found = true
			return storer.ErrStop
		}
		return nil
	})
	return found, err
}
