package git

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// Follows reports whether a commit is in the history of this one.
func (r *repository) Follows(ctx context.Context, pin string) (bool, error) {
	return r.descends(ctx, r.commit.hash, hashOf(pin))
}

// Precedes reports whether this commit is in the history of another, which must still
// be in the repository.
func (r *repository) Precedes(ctx context.Context, pin string) (bool, error) {
	return r.descends(ctx, hashOf(pin), r.commit.hash)
}

func hashOf(pin string) plumbing.Hash { return plumbing.NewHash(strings.TrimPrefix(pin, "git:")) }

// descends reports whether the commit old is now or in the history of now. It asks a
// remote repository for the commits since then: the old one is in the history exactly
// if it is a parent of one of these.
func (r *repository) descends(ctx context.Context, now, old plumbing.Hash) (bool, error) {
	if old == now {
		return true, nil
	}
	if r.connect == nil {
		c, err := commitAt(r.store, now)
		if err != nil {
			return false, err
		}
		return isBefore(ctx, r.store, old, c)
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
	req.Wants, req.Haves = []plumbing.Hash{now}, []plumbing.Hash{old}
	if adv.Capabilities.Supports(capability.Filter) {
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return false, err
		}
		req.Filter = packp.FilterTreeDepth(0) // commits only
	}
	store, known, err := receive(ctx, session, req)
	if c, ok := store.(io.Closer); ok {
		defer c.Close()
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
