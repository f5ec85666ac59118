package server

// What a person is told about a pack, and what is given of it afterwards: exactly the
// bytes that were digested for the question, or nothing.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// facts returns what a person is told about a pack.
func (s *Server) facts(ctx context.Context, p *packs.Pack) (gate.Pack, error) {
	facts, _, err := s.factsAndTree(ctx, p)
	return facts, err
}

// factsAndTree is facts, and also returns the tree that was digested for them.
func (s *Server) factsAndTree(ctx context.Context, p *packs.Pack) (gate.Pack, *packfs.Tree, error) {
	if err := s.keepsOut(p.ID, p.Dir); err != nil {
		return gate.Pack{}, nil, err
	}
	dir, err := p.OpenDir()
	if errors.Is(err, packfs.ErrReplaced) { // an update does this, and it may have just been seen
		return gate.Pack{}, nil, &toolerr.OutdatedError{Pack: p, Err: err}
	}
	if err != nil {
		return gate.Pack{}, nil, err
	}
	defer dir.Close()
	tree, err := dir.DigestKeeping(ctx, s.digests, p.Entry, maxKept)
	if err != nil {
		return gate.Pack{}, nil, err
	}
	if !s.asFound.is(p, dir, tree) {
		return gate.Pack{}, nil, &toolerr.OutdatedError{Pack: p}
	}
	facts := gate.Pack{
		ID: p.ID, Dir: p.Dir, Trust: gate.Trust(p.Trust), Digest: tree.Digest, About: p.Description,
		Loose: p.Loose, Files: s.trees.files(tree), Partial: tree.IsPartial(),
	}
	if s.opts.From != nil {
		facts.From = s.opts.From(p.Dir, tree.Digest)
	}
	if !p.AttachedSince.IsZero() {
		facts.Attached = p.AttachedSince.Format(time.RFC3339Nano)
	}
	return facts, tree, nil
}

// maxKept is the largest entry document, in bytes, that is kept in memory during a
// call and not read again.
const maxKept = 256 << 10

// maxVerified is the largest file, in bytes, whose pages are each checked against the
// digest. Reading all of a larger file for each page would cost more than the page;
// instead, the whole pack is digested again after the page is read.
const maxVerified = 8 << 20

// page reads a page of a pack's file and makes sure that it belongs to the bytes that
// were digested: the file may have been replaced in between, and then put back. Links
// are followed as they were digested.
func (s *Server) page(dir *packfs.Dir, tree *packfs.Tree, path string, offset, length int64) (*packfs.Page, error) {
	limits := packfs.Limits{Page: s.limits.ReadPage, PageMax: s.limits.ReadPageMax, File: s.limits.ReadFile}
	clean, err := packfs.Clean(path)
	if err != nil {
		return nil, err
	}
	if data, ok := tree.Kept(clean); ok {
		return packfs.PageOf(clean, data, offset, length, limits)
	}
	if err := tree.Denies(clean); err != nil {
		return nil, err
	}
	f, ok := tree.Resolve(clean)
	if !ok && tree.Digest != "" {
		// The digest covers no such file. It may be a folder, or the error says what
		// it is. A file that exists by now is not what was approved.
		if _, err := dir.Read(path, offset, length, limits); err != nil {
			return nil, err
		}
		return nil, &packfs.PathError{Path: path, Reason: packfs.ErrChanged}
	}
	if !ok || f.Size > maxVerified {
		return dir.Read(path, offset, length, limits)
	}
	page, err := dir.ReadVerified(f.Path, offset, length, limits, f.Digest)
	if err != nil {
		return nil, err
	}
	page.Path = clean
	return page, nil
}

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
		if now, err := s.facts(ctx, p); err == nil && now.Digest == permit.Digest() {
			return nil
		}
	}
	return changed(permit, p.ID)
}

// isStillAttached reports whether a pack of the call's Catalog is still attached as
// it was.
func (s *Server) isStillAttached(ctx context.Context, c *call, p *packs.Pack) bool {
	catalog := s.catalog(ctx, c.chat)
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
