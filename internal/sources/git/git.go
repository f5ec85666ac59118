// Package git reads one commit of a repository, over https, ssh or from this machine, and
// finds out who signed it.
//
// It starts no program and writes no work tree. It fetches no history, except to see
// whether one commit descends from another.
package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// Bounds on what a repository sends.
const (
	maxObject  = 128 << 20 // bytes of one file or list
	maxObjects = 2 << 30   // bytes of all of them
	maxCount   = 1_000_000
	maxLevels  = 64
	maxFiles   = 100_000 // and folders, in one tree
)

// repository is one commit. It is for one goroutine.
type repository struct {
	at     string // the address, without credentials
	commit *commit
	tag    *tag   // the annotated tag that named it, or nil
	tagged bool   // a tag named it
	proof  []byte // the signed object, once Signer has read it
	store  storer.EncodedObjectStorer
	// trees caches folders: all packs of a repository share the upper ones.
	trees map[plumbing.Hash][]treeEntry // :: hash → its entries
	// connect opens another session with the repository.
	connect func(context.Context) (transport.UploadPackSession, error)
}

// Open fetches one commit of a repository, without its history.
func Open(ctx context.Context, w *web.Access, r address.Reference) (sources.Snapshot, error) {
	u, err := url.Parse(r.At)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return openHere(r, filepath.FromSlash(u.Path))
	}
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	ep, err := transport.NewEndpoint(r.At)
	if err != nil {
		return nil, err
	}
	connect := func(ctx context.Context) (transport.UploadPackSession, error) { return openSSH(ctx, w, u) }
	if u.Scheme != "ssh" {
		client := githttp.NewClient(w.Client())
		connect = func(context.Context) (transport.UploadPackSession, error) {
			return client.NewUploadPackSession(ep, nil)
		}
	}
	session, err := connect(ctx)
	if err != nil {
		return nil, gitError(r, err)
	}
	defer session.Close()
	adv, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, gitError(r, err)
	}
	want, tagged, err := pick(adv, r.Ref)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.At, err)
	}
	repo := &repository{at: r.At, tagged: tagged, connect: connect}
	if err := repo.fetch(ctx, session, adv, want); err != nil {
		return nil, errors.Join(gitError(r, err), repo.Close())
	}
	if err := repo.peel(want); err != nil {
		return nil, errors.Join(gitError(r, err), repo.Close())
	}
	return repo, nil
}

// gitError rewords the most common errors.
func gitError(r address.Reference, err error) error {
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return fmt.Errorf("%s wants to know who asks, or there is no such repository", r.At)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fmt.Errorf("there is no repository at %s", r.At)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return fmt.Errorf("the repository at %s is empty", r.At)
	}
	if wasCut(err) {
		return fmt.Errorf("fetching %s: the connection ended before everything had come (%w); run the command again", r.At, web.PlainError(err))
	}
	return fmt.Errorf("fetching %s: %w", r.At, web.PlainError(err))
}

// wasCut reports whether an error means that a connection ended too early.
func wasCut(err error) bool {
	for _, is := range []error{io.ErrUnexpectedEOF, io.EOF, pktline.ErrInvalidPktLen, transport.ErrEmptyUploadPackRequest} {
		if errors.Is(err, is) {
			return true
		}
	}
	return err != nil && strings.HasSuffix(err.Error(), io.ErrUnexpectedEOF.Error()) // go-git does not always wrap it
}

// pick resolves ref among a repository's references: a branch, a tag or a commit. An
// empty ref means the default branch.
func pick(adv *packp.AdvRefs, ref string) (h plumbing.Hash, tagged bool, err error) {
	if ref == "" {
		if adv.Head == nil {
			return plumbing.ZeroHash, false, errors.New("it has no default branch: name one with @")
		}
		return *adv.Head, false, nil
	}
	tag, isTag := adv.References["refs/tags/"+ref]
	branch, isBranch := adv.References["refs/heads/"+ref]
	switch {
	case isTag && isBranch && tag != branch:
		return plumbing.ZeroHash, false, fmt.Errorf("it has both a tag and a branch %q: write @refs/tags/%s or @refs/heads/%s", ref, ref, ref)
	case isTag:
		return tag, true, nil
	case isBranch:
		return branch, false, nil
	}
	if h, ok := adv.References[ref]; ok {
		return h, strings.HasPrefix(ref, "refs/tags/"), nil
	}
	if plumbing.IsHash(ref) {
		return plumbing.NewHash(ref), false, nil
	}
	return plumbing.ZeroHash, false, fmt.Errorf("it has no branch or tag %q, and a commit is named by all of its 40 digits", ref)
}

// fetch fetches the wanted commit without its parents.
func (r *repository) fetch(ctx context.Context, s transport.UploadPackSession, adv *packp.AdvRefs, want plumbing.Hash) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Wants = []plumbing.Hash{want}
	if adv.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
	}
	var err error
	r.store, _, err = receive(ctx, s, req)
	return err
}

// receive sends req to a repository, and keeps the answer: in memory or, if it is large,
// in a [stored]. had lists the commits that the repository has, out of those that we
// offered.
func receive(ctx context.Context, s transport.UploadPackSession, req *packp.UploadPackRequest) (_ storer.EncodedObjectStorer, had []plumbing.Hash, err error) {
	res, err := s.UploadPack(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Close()
	var in io.Reader = res
	switch {
	case req.Capabilities.Supports(capability.Sideband):
		in = sideband.NewDemuxer(sideband.Sideband, res)
	case req.Capabilities.Supports(capability.Sideband64k):
		in = sideband.NewDemuxer(sideband.Sideband64k, res)
	}
	in = web.Bounded(in)
	head, err := io.ReadAll(io.LimitReader(in, maxKept+1))
	if err != nil {
		return nil, nil, err
	}
	if len(head) <= maxKept {
		objects, err := unpack(head)
		if err != nil {
			return nil, nil, err
		}
		if objects != nil {
			return objects, res.ACKs, nil
		}
	}
	store, err := keep(io.MultiReader(bytes.NewReader(head), in))
	if err != nil {
		return nil, nil, err
	}
	return store, res.ACKs, nil
}

// A stored has the objects of a pack in a temporary folder, until Close.
type stored struct {
	*filesystem.Storage
	dir *temp.Folder
}

func (s *stored) Close() error { return errors.Join(s.Storage.Close(), s.dir.Remove()) }

// keep stores a pack in a folder.
func keep(in io.Reader) (*stored, error) {
	dir, err := temp.New("")
	if err != nil {
		return nil, err
	}
	// The pack stays open: otherwise each object opens it again.
	s := &stored{filesystem.NewStorageWithOptions(osfs.New(dir.Path), cache.NewObjectLRUDefault(), filesystem.Options{KeepDescriptors: true}), dir}
	if err := s.fill(in); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *stored) fill(in io.Reader) error {
	file, err := os.OpenFile(filepath.Join(s.dir.Path, "fetched"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(file, in); err != nil {
		return err
	}
	if err := checkPack(file); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return packfile.UpdateObjectStorage(s, file)
}

// checkPack refuses a pack that unpacks to far more than its size suggests. It
// unpacks all of it once, piece by piece, before anything is kept.
func checkPack(file io.ReadSeeker) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s := packfile.NewScanner(file)
	_, n, err := s.Header()
	if err != nil {
		return err
	}
	if n > maxCount {
		return fmt.Errorf("%w: %d objects, and %d is the limit", stage.ErrTooLarge, n, maxCount)
	}
	all := int64(0)
	for range n {
		h, err := s.NextObjectHeader()
		if err != nil {
			return err
		}
		c := &counted{delta: h.Type.IsDelta()}
		if _, _, err := s.NextObject(c); err != nil {
			return err
		}
		if all += max(c.n, c.result()); all > maxObjects {
			return fmt.Errorf("%w: unpacked, it has more than %d MiB", stage.ErrTooLarge, maxObjects>>20)
		}
	}
	return nil
}

// counted counts the bytes written to it. It keeps the beginning of a delta, which
// holds the size of the result.
type counted struct {
	n     int64
	delta bool
	head  []byte
}

func (c *counted) Write(p []byte) (int, error) {
	if c.delta && len(c.head) < 2*binary.MaxVarintLen64 {
		c.head = append(c.head, p[:min(len(p), 2*binary.MaxVarintLen64)]...)
	}
	c.n += int64(len(p))
	if c.n > maxObject || c.result() > maxObject {
		return 0, fmt.Errorf("%w: a file of more than %d MiB", stage.ErrTooLarge, maxObject>>20)
	}
	return len(p), nil
}

// result returns the size of a delta's result: its second number.
func (c *counted) result() int64 {
	if !c.delta {
		return 0
	}
	_, n := binary.Uvarint(c.head)
	if n <= 0 {
		return 0
	}
	size, m := binary.Uvarint(c.head[n:])
	if m < 0 || size > maxObjects {
		return maxObjects + 1
	}
	return int64(size)
}

// openHere reads a repository on this machine in place. No program runs.
func openHere(r address.Reference, dir string) (sources.Snapshot, error) {
	for _, git := range []string{filepath.Join(dir, ".git"), dir} {
		if info, err := os.Stat(filepath.Join(git, "objects")); err != nil || !info.IsDir() {
			continue
		}
		store := filesystem.NewStorage(osfs.New(git, osfs.WithBoundOS()), cache.NewObjectLRUDefault())
		repo := &repository{at: r.At, store: store}
		hash, tagged, err := pickHere(store, r.Ref)
		if repo.tagged = tagged; err == nil {
			err = repo.peel(hash)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.At, err)
		}
		return repo, nil
	}
	return nil, fmt.Errorf("there is no repository at %s", r.At)
}

func pickHere(store *filesystem.Storage, ref string) (h plumbing.Hash, tagged bool, err error) {
	adv := packp.NewAdvRefs()
	if head, err := storer.ResolveReference(store, plumbing.HEAD); err == nil {
		h := head.Hash()
		adv.Head = &h
	}
	refs, err := store.IterReferences()
	if err != nil {
		return plumbing.ZeroHash, false, err
	}
	err = refs.ForEach(func(r *plumbing.Reference) error {
		if r.Type() == plumbing.HashReference {
			adv.References[r.Name().String()] = r.Hash()
		}
		return nil
	})
	if err != nil {
		return plumbing.ZeroHash, false, err
	}
	return pick(adv, ref)
}

// peel resolves a hash to a commit, directly or through a tag.
func (r *repository) peel(h plumbing.Hash) error {
	for range 4 {
		c, err := commitAt(r.store, h)
		if err == nil {
			r.commit = c
			return nil
		}
		t, terr := tagAt(r.store, h)
		if terr != nil {
			return fmt.Errorf("%s is not a commit: %w", h, err)
		}
		r.tag, h = t, t.target
	}
	return errors.New("a tag of a tag of a tag is not a commit")
}

func (r *repository) Resolved() string { return r.at + "@" + r.commit.hash.String() }

func (r *repository) Pin() string { return "git:" + r.commit.hash.String() }

// About returns when the commit was made, according to the commit.
func (r *repository) About() sources.Skill {
	if r.commit.made.IsZero() {
		return sources.Skill{}
	}
	return sources.Skill{UpdatedAt: r.commit.made.Format(time.RFC3339)}
}

// Fixed reports whether a tag named the commit.
func (r *repository) Fixed() bool { return r.tagged }

func (r *repository) Close() error {
	if c, ok := r.store.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (r *repository) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
	entries, err := r.folderAt(under)
	if err != nil {
		return fmt.Errorf("there is no folder %q in %s: %w", under, r.Resolved(), err)
	}
	n := 0
	return r.walk(ctx, entries, "", 0, &n, do)
}

func (r *repository) walk(ctx context.Context, entries []treeEntry, dir string, depth int, n *int, do func(stage.Entry, io.Reader) error) error {
	if depth > maxLevels {
		return fmt.Errorf("%w: %q is more than %d folders deep", stage.ErrTooLarge, dir, maxLevels)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if *n++; *n > maxFiles {
			return fmt.Errorf("%w: more than %d files", stage.ErrTooLarge, maxFiles)
		}
		// A name with a slash would lead elsewhere when joined.
		name := dir + e.name
		if strings.Contains(e.name, "/") {
			name = path.Join("..", name)
		}
		switch e.mode {
		case filemode.Dir:
			sub, err := r.treeAt(e.hash)
			if err != nil {
				return err
			}
			if err := do(stage.Entry{Path: name, Kind: stage.Folder}, nil); err != nil {
				return err
			}
			if err := r.walk(ctx, sub, name+"/", depth+1, n, do); err != nil {
				return err
			}
		case filemode.Submodule:
			if err := do(stage.Entry{Path: name, Kind: stage.Other, Target: "another repository (submodule)"}, nil); err != nil {
				return err
			}
		default:
			if err := r.file(name, e, do); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *repository) file(name string, e treeEntry, do func(stage.Entry, io.Reader) error) error {
	blob, err := objectAt(r.store, plumbing.BlobObject, e.hash)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	in, err := blob.Reader()
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	defer in.Close()
	switch e.mode {
	case filemode.Regular, filemode.Deprecated, filemode.Executable:
		return do(stage.Entry{Path: name, Exec: e.mode == filemode.Executable}, in)
	case filemode.Symlink:
		var target bytes.Buffer
		if _, err := io.Copy(&target, io.LimitReader(in, 4096)); err != nil {
			return err
		}
		return do(stage.Entry{Path: name, Kind: stage.Link, Target: target.String()}, nil)
	}
	return do(stage.Entry{Path: name, Kind: stage.Other, Target: "neither a file nor a folder"}, nil)
}
