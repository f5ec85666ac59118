// Package given says what a person is told about a pack, and gives what they allowed
// of it: exactly the bytes that were digested for the question, or nothing.
//
// It asks nobody and decides nothing; package gate does. Whether a pack is still
// attached is for its caller to find out.
package given

import (
	"context"
	"errors"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// Options are what a [Giver] is made of.
type Options struct {
	// Digests is shared with others that digest packs.
	Digests *packfs.DigestCache
	// HoldsPrivate reports whether a folder holds files that only this program may
	// read.
	HoldsPrivate func(dir string) bool
	// From returns where the pack in a folder, with a digest, was added from; nil:
	// nowhere.
	From func(dir, digest string) call.From
	// Limits bound a page.
	Limits packfs.Limits
}

// A Giver gives what is in packs. It is safe for concurrent use.
type Giver struct {
	opts    Options
	trees   trees
	asFound asFound
}

// New returns a Giver. All options but From are required.
func New(o Options) *Giver { return &Giver{opts: o} }

// KeepsOut returns why nothing of a pack may be given: its folder contains files that
// only this program may read. It returns nil for every other pack.
func (g *Giver) KeepsOut(p *packs.Pack) error {
	if !g.opts.HoldsPrivate(p.Dir) {
		return nil
	}
	return toolerr.New(toolerr.CodePathDenied, "Tell the user to move the pack into a folder of its own.",
		"the folder of pack %q holds keys or tokens of packs-mcp itself, so nothing in it is given", p.ID)
}

// Facts returns what a person is told about a pack, and the tree that was digested for
// that. The error is a [toolerr.OutdatedError] if the pack is not as the Catalog has
// it.
func (g *Giver) Facts(ctx context.Context, p *packs.Pack) (call.Pack, *packfs.Tree, error) {
	if err := g.KeepsOut(p); err != nil {
		return call.Pack{}, nil, err
	}
	dir, err := p.OpenDir()
	if errors.Is(err, packfs.ErrReplaced) { // an update does this, and it may have just been seen
		return call.Pack{}, nil, &toolerr.OutdatedError{Pack: p, Err: err}
	}
	if err != nil {
		return call.Pack{}, nil, err
	}
	defer dir.Close()
	tree, err := dir.DigestKeeping(ctx, g.opts.Digests, p.Entry, maxKept)
	if err != nil {
		return call.Pack{}, nil, err
	}
	if !g.asFound.is(p, dir, tree) {
		return call.Pack{}, nil, &toolerr.OutdatedError{Pack: p}
	}
	facts := call.Pack{
		ID: p.ID, Dir: p.Dir, Trust: call.Trust(p.Trust), Digest: tree.Digest, About: p.Description,
		Loose: p.Loose, Files: g.trees.files(tree), Partial: tree.IsPartial(),
	}
	if g.opts.From != nil {
		facts.From = g.opts.From(p.Dir, tree.Digest)
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

// Page reads a page of a pack's file and makes sure that it belongs to the bytes that
// were digested: the file may have been replaced in between, and then put back. Links
// are followed as they were digested.
func (g *Giver) Page(dir *packfs.Dir, tree *packfs.Tree, path string, offset, length int64) (*packfs.Page, error) {
	clean, err := packfs.Clean(path)
	if err != nil {
		return nil, err
	}
	if data, ok := tree.Kept(clean); ok {
		return packfs.PageOf(clean, data, offset, length, g.opts.Limits)
	}
	if err := tree.Denies(clean); err != nil {
		return nil, err
	}
	f, ok := tree.Resolve(clean)
	if !ok && tree.Digest != "" {
		// The digest covers no such file. It may be a folder, or the error says what
		// it is. A file that exists by now is not what was approved.
		if _, err := dir.Read(path, offset, length, g.opts.Limits); err != nil {
			return nil, err
		}
		return nil, &packfs.PathError{Path: path, Reason: packfs.ErrChanged}
	}
	if !ok || f.Size > maxVerified {
		return dir.Read(path, offset, length, g.opts.Limits)
	}
	page, err := dir.ReadVerified(f.Path, offset, length, g.opts.Limits, f.Digest)
	if err != nil {
		return nil, err
	}
	page.Path = clean
	return page, nil
}
