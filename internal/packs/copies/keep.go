package copies

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// The folder of a Store holds, where NAME is the digits of a digest:
//
//	lock        is locked while entries are added, removed or taken into use
//	NAME/       one copy: its tree, its size in bytes and, if there are any, the
//	            denied entries that no copy holds; its mtime is its last use
//	NAME.X/     a copy for one run only, made if NAME is in use and was changed
//	NAME.lock   is locked, shared, by each user of NAME; the same for NAME.X
//	making-X/   a copy that is being made or removed
const (
	sizeName   = "size"
	deniedName = "denied" // see packfs.Tree.DeniedText
	making     = "making-"
	lockEnd    = ".lock"
)

// A held is a copy in use.
type held struct {
	name string // of its folder
	once bool   // nobody else will use it
	lock *flock.Flock
}

// take takes the copy called name into use. The caller is inside Alone.
func (s *Store) take(root *os.Root, name string) (*held, error) {
	h := &held{name: name, lock: private.LockIn(root, name+lockEnd)}
	// No one holds it exclusively: a server that removes a copy also holds the folder's lock.
	if ok, err := h.lock.TryRLock(); err != nil || !ok {
		_ = h.lock.Close()
		return nil, &private.FolderError{What: s.folder.What, Path: filepath.Join(s.folder.Path, name), Problem: "cannot be locked; remove it, and call again"}
	}
	return h, nil
}

// unused calls do if the copy called name is not in use, and reports whether it did.
// The caller is inside Alone, so that nobody begins to use the copy meanwhile.
func (s *Store) unused(root *os.Root, name string, do func()) bool {
	lock := private.LockIn(root, name+lockEnd)
	ok, err := lock.TryLock()
	if err != nil || !ok {
		_ = lock.Close()
		return false
	}
	do()
	_ = lock.Close()
	_ = root.Remove(name + lockEnd)
	return true
}

// kept returns the existing copy, taken into use and checked, or nil.
func (s *Store) kept(ctx context.Context, root *os.Root, name, digest string) (h *held, err error) {
	err = s.folder.Alone(ctx, root, func() (err error) {
		if info, err := root.Lstat(name); err != nil || !info.IsDir() {
			return nil
		}
		now := time.Now()
		_ = root.Chtimes(name, now, now) // if this fails, the copy is only removed sooner
		h, err = s.take(root, name)
		return err
	})
	if err != nil || h == nil {
		return nil, err
	}
	if s.holds(ctx, root, name, digest) {
		return h, nil
	}
	_ = h.lock.Close()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, s.drop(ctx, root, name)
}

// holds reports whether the copy called name still has the digest.
func (s *Store) holds(ctx context.Context, root *os.Root, name, digest string) bool {
	info, err := root.Lstat(filepath.Join(name, treeName))
	if err != nil || !info.IsDir() {
		return false
	}
	dir, err := packfs.Open(filepath.Join(root.Name(), name, treeName))
	if err != nil {
		return false
	}
	defer dir.Close()
	dir.LimitTree(s.o.Pack)
	denied, err := root.ReadFile(filepath.Join(name, deniedName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	tree, err := dir.DigestCopy(ctx, &s.cache, denied)
	return err == nil && tree.Digest == digest
}

// drop removes the copy called name, unless it is in use.
func (s *Store) drop(ctx context.Context, root *os.Root, name string) error {
	aside := making + rand.Text()
	gone := false
	err := s.folder.Alone(ctx, root, func() error {
		s.unused(root, name, func() { gone = root.Rename(name, aside) == nil })
		return nil
	})
	if gone {
		remove(root, aside)
	}
	return err
}

// make makes a copy of the pack and takes it into use.
func (s *Store) make(ctx context.Context, root *os.Root, pack *packfs.Dir, name, digest string) (h *held, err error) {
	temp := making + rand.Text()
	// Without a lock, other servers would take it for a leftover.
	inMaking, err := s.take(root, temp)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = inMaking.lock.Close()
		_ = root.Remove(temp + lockEnd)
	}()
	if err := root.Mkdir(temp, 0o700); err != nil {
		return nil, &packfs.WriteError{Path: temp, Err: err}
	}
	if err := fill(ctx, root, temp, pack, digest); err != nil {
		remove(root, temp)
		return nil, err
	}
	var gone []string
	err = s.folder.Alone(ctx, root, func() error {
		to, once := name, false
		if _, err := root.Lstat(name); err == nil {
			// Another server made the same copy meanwhile, or the copy that is there
			// was changed and is in use. Checking it would take time; ours is good.
			to, once = name+"."+rand.Text(), true
			if s.unused(root, name, func() {
				aside := making + rand.Text()
				if root.Rename(name, aside) == nil {
					gone = append(gone, aside)
				}
			}) && len(gone) > 0 {
				to, once = name, false
			}
		}
		if err := root.Rename(temp, to); err != nil {
			return &packfs.WriteError{Path: to, Err: err}
		}
		if h, err = s.take(root, to); err != nil {
			return err
		}
		h.once = once
		gone = append(gone, s.surplus(root)...)
		return nil
	})
	if err != nil {
		gone = append(gone, temp)
	}
	for _, name := range gone {
		remove(root, name)
	}
	return h, err
}

// fill copies the pack into the folder temp.
func fill(ctx context.Context, root *os.Root, temp string, pack *packfs.Dir, digest string) error {
	at := filepath.Join(temp, treeName)
	if err := root.Mkdir(at, 0o700); err != nil {
		return &packfs.WriteError{Path: at, Err: err}
	}
	to, err := root.OpenRoot(at)
	if err != nil {
		return &packfs.WriteError{Path: at, Err: err}
	}
	defer to.Close()
	tree, err := pack.CopyTo(ctx, to)
	switch {
	case errors.Is(err, packfs.ErrChanged), errors.Is(err, packfs.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrChanged, err) // it changed while it was copied
	case err != nil:
		return err
	case tree.Digest != digest:
		return ErrChanged
	}
	if err := root.Chmod(at, 0o700); err != nil {
		return &packfs.WriteError{Path: at, Err: err}
	}
	if text := tree.DeniedText(); len(text) > 0 {
		denied := filepath.Join(temp, deniedName)
		if err := root.WriteFile(denied, text, 0o600); err != nil {
			return &packfs.WriteError{Path: denied, Err: err}
		}
	}
	size := filepath.Join(temp, sizeName)
	if err := root.WriteFile(size, []byte(strconv.FormatInt(tree.Bytes, 10)), 0o600); err != nil {
		return &packfs.WriteError{Path: size, Err: err}
	}
	return nil
}

// release ends the use of a copy.
func (s *Store) release(h *held) {
	_ = h.lock.Close()
	if !h.once {
		return
	}
	if root, err := s.folder.Open(); err == nil {
		// Not the run's context: it may have ended, and the copy has to go anyway.
		_ = s.drop(context.Background(), root, h.name)
		_ = root.Close()
	}
}

// surplus sets aside the copies beyond the Store's bounds, and leftovers of other
// processes. It returns the names to remove. The caller is inside Alone.
func (s *Store) surplus(root *os.Root) (gone []string) {
	type entry struct {
		name string
		used time.Time
		size int64
	}
	var copies []entry
	dir, err := root.Open(".")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil || !info.IsDir() {
			continue
		}
		if strings.HasPrefix(name, making) {
			s.unused(root, name, func() { gone = append(gone, name) })
			continue
		}
		base, once, _ := strings.Cut(name, ".")
		if !isName(base) {
			continue // not ours
		}
		e := entry{name: name, used: info.ModTime(), size: sizeOf(root, name)}
		if once != "" {
			e.used = time.Time{} // remove it unless it is in use
		}
		copies = append(copies, e)
	}
	keep, room := s.o.Copies, s.o.Bytes
	slices.SortFunc(copies, func(a, b entry) int { return b.used.Compare(a.used) }) // most recently used first
	for _, e := range copies {
		if keep, room = keep-1, room-e.size; keep >= 0 && room >= 0 && !e.used.IsZero() {
			continue
		}
		aside := making + rand.Text()
		moved := false
		s.unused(root, e.name, func() { moved = root.Rename(e.name, aside) == nil })
		if moved {
			gone = append(gone, aside)
			keep, room = keep+1, room+e.size
		}
	}
	return gone
}

// Sweep removes what ended processes left behind, and the copies beyond the Store's
// bounds. It does not create the folder.
func (s *Store) Sweep(ctx context.Context) error {
	root, err := s.folder.OpenExisting()
	if err != nil || root == nil {
		return err
	}
	defer root.Close()
	var gone []string
	err = s.folder.Alone(ctx, root, func() error {
		gone = s.surplus(root)
		return nil
	})
	for _, name := range gone {
		remove(root, name)
	}
	return err
}

// sizeOf returns the recorded size of a copy in bytes. A copy without a readable
// record counts as huge, so that it is removed first.
func sizeOf(root *os.Root, name string) int64 {
	text, err := root.ReadFile(filepath.Join(name, sizeName))
	if err != nil {
		return 1 << 50
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 1 << 50
	}
	return n
}

// remove removes a copy that is no longer used. If that fails, a later call tries again.
func remove(root *os.Root, name string) {
	// Removing entries needs write permission for their folder.
	_ = filepath.WalkDir(filepath.Join(root.Name(), name), func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = root.RemoveAll(name)
}
