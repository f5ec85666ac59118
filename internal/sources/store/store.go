// Package store keeps the packs that were added from elsewhere: one folder with a
// folder for each pack, and the lock file that describes each of them.
//
// A pack is complete and checked before it gets its place, and changes by one
// exchange of folders. A process that is killed leaves the old pack or the new one,
// and the next process completes the lock file. Several processes may use a store at
// once.
//
// It does not fetch, verify signatures or ask anybody.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/private"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// inner is the folder beside the packs for everything else: packs being fetched, and
// the previous version of each pack. No search for packs enters a folder whose name
// begins with a dot.
const inner = ".store"

// A Store is one folder of packs and its lock file.
type Store struct {
	Dir      string // of the packs, absolute
	LockFile string // absolute

	mu   sync.Mutex // guards disk
	disk *os.File   // Dir, opened before anything was staged; see openDisk
}

// prepare makes the folders.
func (s *Store) prepare() error {
	for _, dir := range []string{s.Dir, s.in(), s.in("tmp"), s.in("before"), s.in("placed")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making the folder for packs from elsewhere: %w", err)
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if problem := private.FolderProblem(info); problem != "" {
			return &private.FolderError{What: "packs from elsewhere", Path: dir, Problem: problem}
		}
	}
	return nil
}

func (s *Store) in(below ...string) string {
	return filepath.Join(append([]string{s.Dir, inner}, below...)...)
}

// path returns the folder of a pack.
func (s *Store) path(id string) string { return filepath.Join(s.Dir, filepath.FromSlash(id)) }

// Path returns the folder of a pack, or an error if id is not valid.
func (s *Store) Path(id string) (string, error) {
	if !lock.ValidID(id) {
		return "", fmt.Errorf("%q is not the id of a pack", id)
	}
	return s.path(id), nil
}

// Read returns the content of the lock file. A missing file is an empty lock.
func (s *Store) Read() (*lock.Lock, error) {
	data, err := readFile(s.LockFile, lock.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var l *lock.Lock
	if err == nil {
		l, err = lock.Parse(data)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", s.LockFile, err)
	}
	return l, nil
}

// Change calls do while no other process changes the store. Changes that do made by
// the Tx's methods stay, even if do fails.
func (s *Store) Change(ctx context.Context, do func(*Tx) error) error {
	if err := s.prepare(); err != nil {
		return err
	}
	folder := &private.Folder{Path: s.in(), What: "packs from elsewhere"}
	root, err := folder.Open()
	if err != nil {
		return err
	}
	defer root.Close()
	packs, err := os.OpenRoot(s.Dir)
	if err != nil {
		return err
	}
	defer packs.Close()
	return folder.Alone(ctx, root, func() error {
		tx := &Tx{s: s, root: packs}
		if err := tx.recover(); err != nil {
			return err
		}
		if err := temp.Sweep(s.in("tmp")); err != nil {
			return fmt.Errorf("removing what a killed process left: %w", err)
		}
		return do(tx)
	})
}

// Recover finishes what a killed process had begun, so that the lock file says what the
// packs are, and removes what it had fetched. Nothing changes, and no folder is made, if
// there is nothing to finish.
func (s *Store) Recover(ctx context.Context) error {
	_, err := os.Lstat(filepath.Join(s.Dir, filepath.FromSlash(stepFile)))
	cut := err == nil
	if errors.Is(err, fs.ErrNotExist) {
		cut, err = s.isLeft()
	}
	if err != nil || !cut {
		return err
	}
	return s.Change(ctx, func(*Tx) error { return nil })
}

// isLeft reports whether there is a batch of a process that is gone.
func (s *Store) isLeft() (bool, error) {
	entries, err := os.ReadDir(s.in("tmp"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && !temp.InUse(filepath.Join(s.in("tmp"), e.Name())) }), err
}

// Before returns the folder and the entry of a pack's previous version. Another
// process may replace it at any time; check that the folder has the entry's bytes.
func (s *Store) Before(id string) (dir string, e lock.Entry, err error) {
	root, err := os.OpenRoot(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoBefore
	}
	if err != nil {
		return "", lock.Entry{}, err
	}
	defer root.Close()
	t := &Tx{s: s, root: root}
	if e, err = t.before(id); err != nil {
		return "", lock.Entry{}, err
	}
	at := path.Join(before(id), "pack")
	ok, err := t.holds(at, &e)
	if err == nil && !ok {
		err = ErrNoBefore
	}
	return filepath.Join(s.Dir, filepath.FromSlash(at)), e, err
}

// A Tx is a store during a change that excludes all others.
type Tx struct {
	s    *Store
	root *os.Root // the folder of the packs; a project's links to the outside are never followed
	l    *lock.Lock
}

// Lock returns the content of the lock file. It must not be modified.
func (t *Tx) Lock() *lock.Lock { return t.l }

// An Arrival is a staged pack and its future entry in the lock file.
type Arrival struct {
	ID    string
	Pack  *Staged
	Entry lock.Entry
}

// Install gives staged packs their places; a pack that had one becomes the previous
// version. Either all come in or none, even if the process is killed. Only a disk
// failure in the middle can leave just some of them in place; each of these is complete,
// and the next process records them in the lock file.
func (t *Tx) Install(all ...Arrival) error {
	in, coming := occupants{}, map[string]bool{}
	for id := range t.l.Packs {
		in.add(id)
	}
	var steps []step
	for _, a := range all {
		if coming[a.ID] {
			return fmt.Errorf("%q would come in twice", a.ID)
		}
		if err := t.fits(a, in); err != nil {
			return err
		}
		in.add(a.ID)
		coming[a.ID] = true
		staged, err := filepath.Rel(t.s.Dir, a.Pack.Dir)
		if err != nil {
			return err
		}
		steps = append(steps, step{ID: a.ID, Entry: &a.Entry, Staged: filepath.ToSlash(staged), fresh: true})
	}
	if err := t.s.settle(all); err != nil {
		return fmt.Errorf("nothing was changed: waiting for the disk: %w", err)
	}
	return t.run(steps)
}

// occupants are packs by their places.
type occupants map[string]string // :: id of a pack, or a folder above it → the id

func (o occupants) add(id string) {
	for dir := id; dir != "."; dir = path.Dir(dir) {
		if o[dir] != dir { // a pack itself is what is there
			o[dir] = id
		}
	}
}

// overlapping returns a pack whose folder contains, or is inside, that of a valid id; empty
// if there is none.
func (o occupants) overlapping(id string) string {
	for dir := path.Dir(id); dir != "."; dir = path.Dir(dir) {
		if o[dir] == dir {
			return dir
		}
	}
	if other := o[id]; other != id {
		return other
	}
	return ""
}

// fits refuses a pack whose place conflicts with those that are there.
func (t *Tx) fits(a Arrival, in occupants) error {
	id, e := a.ID, a.Entry
	if !lock.ValidID(id) {
		return fmt.Errorf("%q is not the id of a pack", id)
	}
	if e.Digest != a.Pack.Tree.Digest() {
		return errors.New("the entry is for other bytes")
	}
	if other := in.overlapping(id); other != "" {
		return fmt.Errorf("%q cannot be beside %q: one folder would be in the other", id, other)
	}
	for dir := path.Dir(id); dir != "."; dir = path.Dir(dir) {
		info, err := t.root.Lstat(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%q is not a folder, so %q cannot be in it", t.s.path(dir), id)
		}
	}
	if _, ok := t.l.Packs[id]; ok {
		return nil
	}
	if _, err := t.root.Lstat(id); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	same, err := t.holds(id, &e)
	if err == nil && !same {
		err = fmt.Errorf("%q is there already, and was not added by packs-mcp", t.s.path(id))
	}
	return err
}

// Remove removes a pack and its previous version.
func (t *Tx) Remove(id string) error {
	if _, ok := t.l.Packs[id]; !ok {
		return fmt.Errorf("%q is not in %q", id, t.s.LockFile)
	}
	return t.run([]step{{ID: id}})
}

// A Stray is a pack that was added here but that the lock file no longer names: its
// entry was removed by hand, or by somebody else on the same project.
type Stray struct {
	ID    string
	Entry lock.Entry // from when the pack was added; a project may have forged it
	Same  bool       // its bytes still match
}

// Strays returns the packs that are here but not in the lock file. A folder that was not
// added does not count.
func (s *Store) Strays(l *lock.Lock) ([]Stray, error) {
	root, err := os.OpenRoot(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	t := &Tx{s: s, root: root, l: l}
	names, err := fs.Glob(root.FS(), notes+"/*.json")
	if err != nil {
		return nil, err
	}
	in := occupants{}
	for id := range l.Packs {
		in.add(id)
	}
	var all []Stray
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxPlaced {
			continue // was not added
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p := placed{}
		if json.Unmarshal(data, &p) != nil || !lock.ValidID(p.ID) || placedFile(p.ID) != name {
			continue
		}
		if _, ok := l.Packs[p.ID]; ok || in.overlapping(p.ID) != "" {
			continue
		}
		if info, err := root.Lstat(p.ID); err != nil || !info.IsDir() {
			continue
		}
		same, err := t.holds(p.ID, &p.Entry)
		if err != nil {
			return nil, err
		}
		all = append(all, Stray{p.ID, p.Entry, same})
	}
	slices.SortFunc(all, func(a, b Stray) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// Discard removes a stray. If its bytes have changed, it stays, since somebody edited
// it.
func (t *Tx) Discard(id string) error {
	all, err := t.s.Strays(t.l)
	if err != nil {
		return err
	}
	for _, s := range all {
		switch {
		case s.ID != id:
		case !s.Same:
			return fmt.Errorf("%q was changed since it was added; remove it by hand if you do not need it", t.s.path(id))
		default:
			return t.run([]step{{ID: id, Before: &s.Entry}})
		}
	}
	return fmt.Errorf("%q was not added, or is in %q", id, t.s.LockFile)
}

// A placed is the note beside a pack that has its place.
type placed struct {
	ID    string     `json:"id"`
	Entry lock.Entry `json:"entry"`
}

// maxPlaced is the largest note that is read, in bytes.
const maxPlaced = 1 << 20

// notes is the folder with a note for each pack that was added.
const notes = inner + "/placed"

// noteName returns the name of a pack's note.
func noteName(id string) string { return keyOf(id) + ".json" }

// placedFile returns the path of a pack's note.
func placedFile(id string) string { return path.Join(notes, noteName(id)) }

// ErrNoBefore says that there is no previous version.
var ErrNoBefore = errors.New("there is no version before this one")

// Undo puts the previous version back in its place. The current one becomes the
// previous version.
func (t *Tx) Undo(id string) (lock.Entry, error) {
	e, err := t.before(id)
	if err != nil {
		return lock.Entry{}, err
	}
	return e, t.run([]step{{ID: id, Entry: &e, Staged: path.Join(before(id), "pack")}})
}

// before returns the path of a pack's previous version, below the folder of the
// packs.
func before(id string) string { return path.Join(inner, "before", keyOf(id)) }

// keyOf returns an id as a file name.
func keyOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// before returns the entry of the previous version.
func (t *Tx) before(id string) (lock.Entry, error) {
	if info, err := t.root.Lstat(before(id)); err == nil && !info.IsDir() { // a project's link leads to another pack
		return lock.Entry{}, ErrNoBefore
	}
	data, err := t.root.ReadFile(path.Join(before(id), "entry.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return lock.Entry{}, ErrNoBefore
	}
	var e lock.Entry
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	return e, err
}
