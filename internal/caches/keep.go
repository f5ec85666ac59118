package caches

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/packs-mcp/packs-mcp/internal/private"
)

// Besides the caches, the folder of a Store has a lock, which is held while
// entries are added, removed or taken into use, and gone-X folders, which are
// being removed.
const gonePrefix = "gone-"

// lockOf returns the lock of the cache named key, not yet taken.
func lockOf(root *os.Root, key string) *flock.Flock {
	return private.LockIn(root, filepath.Join(key, lockName))
}

func isKey(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// unused calls do if no run uses the cache named key, and reports whether it
// did. It is called inside Alone, so that no run can begin to use it.
func (s *Store) unused(root *os.Root, key string, do func()) bool {
	lock := lockOf(root, key)
	ok, err := lock.TryLock()
	_ = lock.Close() // do may move the folder, which some systems allow only once the lock is closed
	if err != nil || !ok {
		return false
	}
	do()
	return true
}

// aside moves the cache named key away, to be removed, unless a run uses it, and
// reports whether it did. It is called inside Alone.
func (s *Store) aside(root *os.Root, key string) (gone string, ok bool) {
	gone = gonePrefix + rand.Text()
	s.unused(root, key, func() { ok = root.Rename(key, gone) == nil })
	return gone, ok
}

// discard is aside for a cache whose creation failed, which nobody uses yet.
func (s *Store) discard(root *os.Root, key string) []string {
	gone := gonePrefix + rand.Text()
	if root.Rename(key, gone) != nil {
		return nil
	}
	return []string{gone}
}

// surplus moves away what exceeds the Store's bounds, and returns the names of
// folders to remove. With about, it also moves away caches that another version
// of the same tool left. It is called inside Alone.
func (s *Store) surplus(root *os.Root, about *About) (gone []string) {
	all := s.entries(root)
	gone = slices.Clone(all.gone)
	now, keep, room := s.o.Now(), s.o.Count, s.o.Bytes
	if about != nil {
		keep-- // leave room for the cache about to be created
	}
	slices.SortFunc(all.caches, func(a, b Entry) int { return b.Used.Compare(a.Used) }) // those to keep first
	for _, e := range all.caches {
		old := e.About == About{} || e.open || now.Sub(e.Used) > s.o.Age ||
			about != nil && e.About.Subject == about.Subject && e.About.Version != about.Version
		if keep, room = keep-1, room-e.Bytes; keep >= 0 && room >= 0 && !old {
			continue
		}
		if aside, ok := s.aside(root, e.key); ok {
			gone = append(gone, aside)
			keep, room = keep+1, room+e.Bytes
		}
	}
	return gone
}

// An Entry is one existing cache.
type Entry struct {
	About About     // zero: it was revoked
	Bytes int64     // after the last run that ended
	Used  time.Time // last

	key  string
	open bool // it is in use, or its last server was killed
}

// entries are the contents of a Store's folder.
type entries struct {
	caches []Entry
	gone   []string // folders being removed
}

func (s *Store) entries(root *os.Root) (all entries) {
	dir, err := root.Open(".")
	if err != nil {
		return all
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		info, err := root.Lstat(name)
		switch {
		case err != nil || !info.IsDir():
		case strings.HasPrefix(name, gonePrefix):
			all.gone = append(all.gone, name)
		case isKey(name):
			e := Entry{Bytes: sizeOf(root, name), Used: info.ModTime(), key: name}
			e.About, _ = aboutOf(root, name)
			_, err := root.Lstat(filepath.Join(name, openName))
			e.open = !errors.Is(err, fs.ErrNotExist)
			all.caches = append(all.caches, e)
		}
	}
	return all
}

// sizeOf returns the recorded size of a cache in bytes.
func sizeOf(root *os.Root, key string) int64 {
	text, err := root.ReadFile(filepath.Join(key, sizeName))
	if err != nil {
		return 0 // no run has ended yet
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 1 << 50 // invalid, so removed first
	}
	return n
}

// List returns the existing caches, most recently used first. It does not create
// a missing folder.
func (s *Store) List() ([]Entry, error) {
	root, err := s.folder.OpenExisting()
	if err != nil || root == nil {
		return nil, err
	}
	defer root.Close()
	all := s.entries(root).caches
	slices.SortFunc(all, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return all, nil
}

// Sweep removes caches that were not used for long or that exceed the Store's
// bounds, and what ended processes left.
func (s *Store) Sweep(ctx context.Context) error {
	return s.change(ctx, func(root *os.Root) []string { return s.surplus(root, nil) })
}

// Forget empties the caches for whose keys chosen returns true, and returns
// their number. A run that uses one keeps it until the run ends; no other run
// gets it.
func (s *Store) Forget(ctx context.Context, chosen func(key string) bool) (n int, err error) {
	err = s.change(ctx, func(root *os.Root) (gone []string) {
		for _, e := range s.entries(root).caches {
			if !chosen(e.key) {
				continue
			}
			if aside, ok := s.aside(root, e.key); ok {
				gone = append(gone, aside)
				n++
			} else if root.Remove(filepath.Join(e.key, aboutName)) == nil {
				n++
			}
		}
		return gone
	})
	return n, err
}

// change calls choose inside Alone, and removes what it returns. It does not
// create a missing folder.
func (s *Store) change(ctx context.Context, choose func(*os.Root) (gone []string)) error {
	root, err := s.folder.OpenExisting()
	if err != nil || root == nil {
		return err
	}
	defer root.Close()
	var gone []string
	err = s.folder.Alone(ctx, root, func() error {
		gone = choose(root)
		return nil
	})
	return errors.Join(err, remove(root, gone))
}

// remove removes folders that programs filled with arbitrary content. A later
// call removes what is left.
func remove(root *os.Root, names []string) error {
	var all error
	for _, name := range names {
		all = errors.Join(all, removeTree(root, name))
	}
	return all
}

// removeTree removes a folder. It moves nonempty subfolders to the top, so that
// it never has more than two open or uses a long path: no depth keeps it from
// removing everything.
func removeTree(root *os.Root, name string) error {
	top, err := openFolder(root, name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another server removed it
		}
		return err
	}
	defer top.Close()
	for moved := 1; moved > 0; {
		moved = 0
		err = eachName(top, func(at string) error {
			if top.Remove(at) == nil {
				return nil
			}
			sub, err := openFolder(top, at)
			if err != nil {
				return err
			}
			err = eachName(sub, func(below string) error {
				if sub.Remove(below) == nil {
					return nil
				}
				_ = sub.Chmod(below, 0o700) // moving a folder writes to it
				moved++
				return top.Rename(filepath.Join(at, below), "up-"+rand.Text())
			})
			_ = sub.Close()
			return errors.Join(err, top.Remove(at))
		})
		if err != nil {
			return err
		}
	}
	return root.Remove(name)
}

// openFolder opens a folder, but not a link to one, even if a program removed
// our access to it.
func openFolder(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is not a folder")}
	}
	_ = root.Chmod(name, 0o700)
	return root.OpenRoot(name)
}

// eachName calls do for every name in a folder, including names that exist only
// part of the time.
func eachName(root *os.Root, do func(name string) error) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		if e := do(name); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
