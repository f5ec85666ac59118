// Package caches keeps folders in which tools find what their earlier runs left,
// such as a compiler's object files.
//
// A cache has a key: the digest of everything that an answer for its tool is
// bound to. A run gets the folder of its own key and no other, so it cannot
// find, let alone read, a cache that was written by another version of the pack,
// for another person, in another project or with other rights. This needs no
// comparing and no emptying. A cache is emptied to make room, because a person
// revoked an answer, or because it may be incomplete.
//
// Programs of packs fill these folders. The package opens only folders in them,
// and follows no links.
package caches

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/packs-mcp/packs-mcp/internal/private"
)

// The folder of a cache is named by its key and contains:
//
//	about.json  its owner; without this file no other run gets the cache
//	lock        each run that uses the cache holds a shared lock on it
//	open        exists while the cache is in use
//	size        the size of the data in bytes after the last run
//	data/       what runs get
//
// Runs can write only in data. The folder's own modification time is when the
// cache was last used.
const (
	aboutName = "about.json"
	lockName  = "lock"
	openName  = "open"
	sizeName  = "size"
	dataName  = "data"
)

// maxAbout is the largest about.json that is read, in bytes.
const maxAbout = 64 << 10

// An About identifies a cache's owner.
type About struct {
	// Subject is what answers are about, whatever its version: a person, a pack
	// in a folder, and a tool.
	Subject string `json:"subject"`
	// Version is the version of the pack and of the tool's declaration. Caches
	// of the same subject with another version are removed when a new cache is
	// created.
	Version string `json:"version"`

	Person string `json:"person,omitempty"` // empty: the user of this machine
	Pack   string `json:"pack"`
	Tool   string `json:"tool"`
	Name   string `json:"name"` // what the tool calls the cache
}

// Held is what a cache holds after a run.
type Held struct {
	Bytes int64 // negative: as much as before
	Full  bool  // the cache must be emptied
}

// ErrOver means that a cache was revoked while a run uses it.
var ErrOver = errors.New("the cache was revoked, and a run that began before still uses it; call again when that run has ended")

// Options bound a [Store]. The zero value is ready.
type Options struct {
	// Count is how many caches there may be; 0 stands for 64.
	Count int
	// Bytes is how much the caches may hold together; 0 stands for 8 GiB. Over
	// either bound, the least recently used caches are removed. A cache in use
	// stays.
	Bytes int64
	// Age is how long an unused cache is kept; 0 stands for 30 days.
	Age time.Duration
	Now func() time.Time // nil: time.Now
}

// A Store is a folder of caches. It is safe for concurrent use, including by
// several processes.
type Store struct {
	folder private.Folder
	o      Options
}

// Open returns the Store in the absolute folder dir, which is created when a
// cache is first taken.
func Open(dir string, o Options) *Store {
	if o.Count <= 0 {
		o.Count = 64
	}
	if o.Bytes <= 0 {
		o.Bytes = 8 << 30
	}
	if o.Age <= 0 {
		o.Age = 30 * 24 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{folder: private.Folder{Path: dir, What: "tools' caches"}, o: o}
}

// A Cache is a cache in use.
type Cache struct {
	// Folder is what a run gets: an absolute path without symbolic links. Only
	// the user may enter its parent folder.
	Folder string

	store *Store
	key   string
	info  os.FileInfo // of the folder named key
	lock  *flock.Flock
	once  sync.Once
}

// Take begins using the cache named key, which is 64 hexadecimal digits, and
// creates it if it does not exist. Any number of runs, of any number of servers,
// may use a cache at the same time. [Cache.Release] ends the use.
//
// Take replaces an unused cache with an empty one if it may be incomplete,
// because the last server that used it was killed, or if its about.json does not
// match about.
//
// The error is a [*private.FolderError], [ErrOver], a write error, or ctx's own.
func (s *Store) Take(ctx context.Context, key string, about About) (*Cache, error) {
	if !isKey(key) {
		return nil, fmt.Errorf("taking a cache: %q is not a key", key)
	}
	root, err := s.folder.Open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var c *Cache
	var gone []string
	err = s.folder.Alone(ctx, root, func() error {
		c, gone, err = s.take(root, key, about)
		return err
	})
	remove(root, gone)
	if err != nil {
		return nil, fmt.Errorf("taking the cache %q: %w", about.Name, said(err))
	}
	return c, nil
}

// take is Take, called inside Alone. It also returns the names of folders to
// remove.
func (s *Store) take(root *os.Root, key string, about About) (c *Cache, gone []string, err error) {
	there, err := s.looks(root, key)
	if err != nil {
		return nil, nil, err
	}
	if there && !s.isWhole(root, key, about) {
		switch aside, ok := s.aside(root, key); {
		case ok:
			there, gone = false, append(gone, aside)
		case s.unused(root, key, func() {}):
			return nil, nil, s.refuse(key, "cannot be emptied; remove it, and call again")
		case !s.isFor(root, key, about):
			return nil, nil, ErrOver
		}
	}
	if !there {
		gone = append(gone, s.surplus(root, &about)...)
		if err := s.make(root, key, about); err != nil {
			return nil, append(gone, s.discard(root, key)...), err
		}
	}
	c = &Cache{Folder: filepath.Join(root.Name(), key, dataName), store: s, key: key, lock: lockOf(root, key)}
	if ok, err := c.lock.TryRLock(); err != nil || !ok {
		_ = c.lock.Close()
		return nil, gone, s.refuse(key, "cannot be locked")
	}
	if c.info, err = s.begin(root, key); err != nil {
		_ = c.lock.Close()
		return nil, gone, err
	}
	return c, gone, nil
}

// looks reports whether a cache named key exists. Its error says what is there
// instead.
func (s *Store) looks(root *os.Root, key string) (there bool, err error) {
	for _, name := range []string{key, filepath.Join(key, dataName)} {
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name != key, nil // a cache without data is incomplete
		}
		problem := ""
		if err != nil {
			problem = "cannot be examined: " + private.Cause(err)
		} else if problem = private.FolderProblem(info); problem == "" && name == key && private.OpenToOthers(info) {
			problem = "is open to other users"
		}
		if problem != "" {
			return false, s.refuse(name, problem+"; remove it, and call again")
		}
	}
	return true, nil
}

// isWhole reports whether the cache named key matches about, no server that used
// it was killed, and none uses it now.
func (s *Store) isWhole(root *os.Root, key string, about About) bool {
	if _, err := root.Lstat(filepath.Join(key, openName)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return s.isFor(root, key, about)
}

// isFor reports whether the cache named key matches about and has a data folder.
func (s *Store) isFor(root *os.Root, key string, about About) bool {
	if _, err := root.Lstat(filepath.Join(key, dataName)); err != nil {
		return false
	}
	is, ok := aboutOf(root, key)
	return ok && is == about
}

// aboutOf reads a cache's about.json.
func aboutOf(root *os.Root, key string) (about About, ok bool) {
	name := filepath.Join(key, aboutName)
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxAbout {
		return About{}, false
	}
	text, err := root.ReadFile(name)
	return about, err == nil && json.Unmarshal(text, &about) == nil
}

// make creates an empty cache.
func (s *Store) make(root *os.Root, key string, about About) error {
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if err := root.Mkdir(key, 0o700); err != nil {
		return err
	}
	if err := root.Mkdir(filepath.Join(key, dataName), 0o700); err != nil {
		return err
	}
	return root.WriteFile(filepath.Join(key, aboutName), text, 0o600)
}

// begin records that the cache named key is in use, and restores our access if a
// run removed it.
func (s *Store) begin(root *os.Root, key string) (os.FileInfo, error) {
	f, err := root.OpenFile(filepath.Join(key, openName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if err := root.Chmod(filepath.Join(key, dataName), 0o700); err != nil {
		return nil, err
	}
	return root.Lstat(key)
}

// Release ends the use of the cache. The last run to end empties it if it is
// full or was revoked. Only the first call has an effect.
func (c *Cache) Release(held Held) {
	c.once.Do(func() {
		defer c.lock.Close()
		root, err := c.store.folder.Open()
		if err != nil {
			return // something else has replaced the folder of caches
		}
		defer root.Close()
		var gone []string
		// The run is over, even if its caller's context ended.
		_ = c.store.folder.Alone(context.Background(), root, func() error {
			_ = c.lock.Close()
			gone = c.store.end(root, c, held)
			return nil
		})
		remove(root, gone)
	})
}

// end records that a run has ended, and returns the names of folders to remove.
// It is called inside Alone.
func (s *Store) end(root *os.Root, c *Cache, held Held) (gone []string) {
	if now, err := root.Lstat(c.key); err != nil || !os.SameFile(now, c.info) {
		return nil // it no longer exists
	}
	if _, ok := aboutOf(root, c.key); !ok || held.Full {
		if aside, unused := s.aside(root, c.key); unused {
			return []string{aside}
		}
		return nil // the last run that uses it empties it
	}
	grew := false
	size := filepath.Join(c.key, sizeName)
	if text := strconv.FormatInt(held.Bytes, 10); held.Bytes >= 0 {
		if old, err := root.ReadFile(size); err != nil || string(old) != text {
			// A size that cannot be written counts as the largest possible.
			grew = root.WriteFile(size, []byte(text), 0o600) == nil || root.Remove(size) == nil
		}
	}
	s.unused(root, c.key, func() { _ = root.Remove(filepath.Join(c.key, openName)) })
	if grew {
		return s.surplus(root, nil)
	}
	return nil
}

// said explains the most common error of creating a cache.
func said(err error) error {
	if private.DiskFull(err) {
		return fmt.Errorf("the disk with the caches is full; free some space and call again: %w", err)
	}
	return err
}

// refuse returns the error for an entry of the folder.
func (s *Store) refuse(name, problem string) error {
	return &private.FolderError{What: s.folder.What, Path: filepath.Join(s.folder.Path, name), Problem: problem}
}
