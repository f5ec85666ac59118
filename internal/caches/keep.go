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

// Beside the caches, the folder of a Store has a lock, which is locked while
// entries come, go, or are taken into use, and gone-X, which is being removed.
const gonePrefix = "gone-"

// lockOf returns the lock of the cache called key, not taken.
func lockOf(root *os.Root, key string) *flock.Flock {
	return private.LockIn(root, filepath.Join(key, lockName))
}

func isKey(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// unused calls do when no run uses the cache called key, and reports that. It is
// called inside of Alone, so that no run begins to.
func (s *Store) unused(root *os.Root, key string, do func()) bool {
	lock := lockOf(root, key)
	ok, err := lock.TryLock()
	_ = lock.Close() // do may move it, which some systems allow only when it is closed
	if err != nil || !ok {
		return false
	}
	do()
	return true
}

// aside moves the cache called key away, to be removed, and reports whether it
// could: no run uses it. It is called inside of Alone.
func (s *Store) aside(root *os.Root, key string) (gone string, ok bool) {
	gone = gonePrefix + rand.Text()
	s.unused(root, key, func() { ok = root.Rename(key, gone) == nil })
	return gone, ok
}

// discard is aside for what was only half made, and is nobody's yet.
func (s *Store) discard(root *os.Root, key string) []string {
	gone := gonePrefix + rand.Text()
	if root.Rename(key, gone) != nil {
		return nil
	}
	return []string{gone}
}

// surplus moves away what is more than the Store keeps, and returns the names of
// what is to be removed. With about, those caches go as well that another version
// of the same tool has left. It is called inside of Alone.
func (s *Store) surplus(root *os.Root, about *About) (gone []string) {
	all := s.entries(root)
	gone = slices.Clone(all.gone)
	now, keep, room := s.o.Now(), s.o.Count, s.o.Bytes
	if about != nil {
		keep-- // for the one that is about to be made
	}
	slices.SortFunc(all.caches, func(a, b Entry) int { return b.Used.Compare(a.Used) }) // what is to stay first
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

// An Entry is one cache that there is.
type Entry struct {
	About About     // zero: it is over
	Bytes int64     // after the last run that ended
	Used  time.Time // last

	key  string
	open bool // it is in use, or its last server was killed
}

// entries are what the folder of a Store has in it.
type entries struct {
	caches []Entry
	gone   []string // what is being removed
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

// sizeOf is how many bytes a cache is said to hold.
func sizeOf(root *os.Root, key string) int64 {
	text, err := root.ReadFile(filepath.Join(key, sizeName))
	if err != nil {
		return 0 // no run has ended
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 1 << 50 // it goes first
	}
	return n
}

// List returns the caches that there are, those first that were used last. A
// folder that is not there yet is not made.
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

// Sweep removes what was not used for long, what is more than the Store keeps, and
// what processes that ended have left.
func (s *Store) Sweep(ctx context.Context) error {
	return s.change(ctx, func(root *os.Root) []string { return s.surplus(root, nil) })
}

// Forget empties the caches with the keys for which chosen reports true, and returns
// how many they are. A run that uses one keeps it until it ends; no other run gets it.
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

// change calls choose inside of Alone, and removes what it returns. A folder that is not
// there yet is not made.
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

// remove removes folders that programs filled as they liked. What is left goes
// another time.
func remove(root *os.Root, names []string) error {
	var all error
	for _, name := range names {
		all = errors.Join(all, removeTree(root, name))
	}
	return all
}

// removeTree removes a folder. It moves folders with something in them up to the
// top, so that it never has more than two open, nor names one by a long path: no
// depth keeps it from removing all.
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

// openFolder opens a folder, and no link to one, also when a program took our
// rights to it away.
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

// eachName calls do for every name in a folder, also for those that are there for
// a part of the time.
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
