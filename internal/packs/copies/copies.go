// Package copies keeps private copies of packs, so that what a person approved
// is what runs: a program is started from a copy that has the approved digest,
// whatever happens to the pack itself between the question and the run, and
// while it runs.
//
// Copies are in one folder of the user's, which several servers share, and to
// which no run is to write. The package does not know what is approved; it gives
// out a tree with the digest that it is asked for, or none. It keeps out nobody
// who has all of the user's rights: such a program can change a copy after it
// was looked at, as it can change everything else.
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

// ErrChanged says that a pack no longer has the digest that a copy of it was to
// have.
var ErrChanged = errors.New("the pack changed after it was approved")

// Options bound a [Store]. The zero value is ready.
type Options struct {
	// Copies is how many there may be; 0 stands for 64.
	Copies int
	// Bytes is how large they may be, taken together; 0 stands for 4 GiB.
	//
	// Beyond either, those go that were not used for longest. What is in use is
	// kept, so that a run never loses its pack.
	Bytes int64
	// Pack is how large a pack may be, in bytes; see [packfs.Dir.LimitTree].
	Pack int64
}

// A Store is a folder of copies. Safe for concurrent use, by several processes
// as well.
type Store struct {
	folder private.Folder
	o      Options
	cache  packfs.DigestCache
}

// Open returns the Store in the absolute folder dir, which is made when
// something is copied.
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

// Copy returns the absolute path, without symbolic links, of a folder that
// holds exactly the tree whose digest is digest, as [packfs.Dir.Digest] has it,
// without what that denies:
// one that is kept already, or a new copy of the pack at packDir, which is a
// folder, or the one file of a loose tool; of that, the path is the copied
// file's. The folder stays until release is called, which is never nil when
// there is no error, and may be called more than once.
//
// Only the user may look into the folder, and its files are read-only. It can
// still have been changed by a program with the user's own rights, so it is looked at again each time, as the pack
// itself is: all files, but of those for which there is no room in the first
// 8 MiB only their stamps.
//
// The error is [ErrChanged], possibly wrapped, when the pack has another digest
// now; a [*packfs.PathError] when the pack cannot be read; a [*private.FolderError]; a
// [*packfs.WriteError] when the copy cannot be written; or ctx's own.
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

// said puts into words what most often keeps a copy from being written.
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

// openPack opens the folder of a pack, or a folder that has nothing but the
// file of a loose tool, which is then called file.
func openPack(path string) (pack *packfs.Dir, file string, err error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() {
		pack, err = packfs.OpenFile(path)
		return pack, filepath.Base(path), err
	}
	pack, err = packfs.Open(path)
	return pack, "", err
}
