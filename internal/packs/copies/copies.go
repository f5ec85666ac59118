// Package copies keeps private copies of packs, so that what a person approved is
// what runs. A program is started from a copy with the approved digest, whatever
// happens to the pack itself between the question and the end of the run.
//
// The copies are in one folder of the user, shared by all servers, and no run may
// write to it. The package does not know what is approved: it returns a tree with the
// requested digest, or an error. It does not protect against a program with all of the
// user's rights, which can change a copy after the check as it can change everything
// else.
package copies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// ErrChanged says that a pack no longer has the requested digest.
var ErrChanged = errors.New("the pack changed after it was approved")

// Options bound a [Store]. The zero value is ready.
type Options struct {
	// Copies is how many copies to keep; 0 means 64.
	Copies int
	// Bytes is their total size; 0 means 4 GiB.
	//
	// Beyond either bound, the least recently used copies are removed. A copy in
	// use is kept, so that a run never loses its pack.
	Bytes int64
	// Pack is how large a pack may be, in bytes; see [packfs.Dir.LimitTree].
	Pack int64
}

// A Store is a folder of copies. Safe for concurrent use, also by several processes.
type Store struct {
	folder private.Folder
	o      Options
	cache  packfs.DigestCache
}

// Open returns the Store in the absolute folder dir, which is created by the first
// copy.
func Open(dir string, o Options) *Store {
	if o.Copies <= 0 {
		o.Copies = 64
	}
	if o.Bytes <= 0 {
		o.Bytes = 4 << 30
	}
	return &Store{folder: private.Folder{Path: dir, What: "private copies of packs"}, o: o}
}

// treeName is the name of the tree in the folder of a copy.
const treeName = "pack"

// Copy returns the absolute path, without symlinks, of a folder that holds exactly the
// tree with this digest, as [packfs.Dir.Digest] computes it, without the entries that
// Digest denies. The folder is a copy from before, or a new copy of the pack at
// packDir. packDir is a folder, or the one file of a loose tool; then the path is that
// of the copied file. The folder stays until release is called. Without an error,
// release is not nil; it may be called more than once.
//
// Only the user can look into the folder, and its files are read-only. A program with
// the user's own rights can still have changed it, so each call checks it again, as it
// would check the pack itself: it reads every file, except that beyond the first 8 MiB
// it may rely on stamps.
//
// The error is [ErrChanged], possibly wrapped, if the pack has another digest now; a
// [*packfs.PathError] if the pack cannot be read; a [*private.FolderError]; a
// [*packfs.WriteError] if the copy cannot be written; or ctx's error.
func (s *Store) Copy(ctx context.Context, packDir, digest string) (folder string, release func(), err error) {
	name, err := nameOf(digest)
	if err != nil {
		return "", nil, err
	}
	pack, file, err := openPack(packDir)
	if errors.Is(err, packfs.ErrNotFound) {
		return "", nil, fmt.Errorf("%w: there is nothing at %q", ErrChanged, packDir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("copying the pack %q for the run: %w", packDir, err)
	}
	defer pack.Close()
	pack.LimitTree(s.o.Pack)
	root, err := s.folder.Open()
	if err != nil {
		return "", nil, err
	}
	defer root.Close()

	held, err := s.kept(ctx, root, name, digest)
	if err != nil {
		return "", nil, err
	}
	if held == nil {
		if held, err = s.make(ctx, root, pack, name, digest); err != nil {
			return "", nil, fmt.Errorf("copying the pack %q for the run: %w", packDir, said(err))
		}
	}
	folder = filepath.Join(root.Name(), held.name, treeName, file)
	return folder, sync.OnceFunc(func() { s.release(held) }), nil
}

// said adds to err the most common reason why a copy cannot be written.
func said(err error) error {
	if private.DiskFull(err) {
		return fmt.Errorf("the disk with the private copies is full; free some space and call again: %w", err)
	}
	return err
}

// nameOf returns the hexadecimal digits of a digest.
func nameOf(digest string) (string, error) {
	name, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || !isName(name) {
		return "", fmt.Errorf("copying a pack: %q is not the digest of one", digest)
	}
	return name, nil
}

func isName(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// openPack opens the folder of a pack. For a loose tool, it opens the tool's folder as
// if it held only that file, and returns the file's name.
func openPack(path string) (pack *packfs.Dir, file string, err error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() {
		pack, err = packfs.OpenFile(path)
		return pack, filepath.Base(path), err
	}
	pack, err = packfs.Open(path)
	return pack, "", err
}
