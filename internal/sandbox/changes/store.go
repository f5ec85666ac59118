package changes

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
)

// Options are where a store is and how much it keeps.
type Options struct {
	// Dir is the private folder for sets, journals and turns. Open makes it with
	// mode 0700. All servers of a user share it.
	Dir      string
	MaxBytes int64         // of held content and undo data; 0: 1 GiB
	MaxAge   time.Duration // after which they go; 0: 24 hours
	// Protect are more protected patterns, as in the table of package protect;
	// Unprotect are patterns of that table that do not count, spelled the same.
	Protect, Unprotect []string
	// Own are absolute paths that no run may change wherever they are: pack roots,
	// and this program's own files.
	Own []string
	// GitConfig are the user's own files of git's settings, as ~/.gitconfig: what
	// they and a repository's settings name in a folder is protected in it.
	GitConfig []string
	// Logger hears of what recovery did; nil: nobody does.
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// A Store keeps the change sets of one user. Its methods are safe for
// concurrent use, also by several processes.
type Store struct {
	sets     string // folder: one folder for each set
	open     string // folder: an empty file for each set that is not settled
	turns    string // folder: the locks of turns
	maxBytes int64
	maxAge   time.Duration
	names    *protect.Names
	own      []string // with links resolved
	// gitConfig is Options.GitConfig.
	gitConfig []string
	log       *slog.Logger
	now       func() time.Time
}

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("no such change set")
	// ErrExpired is for a set whose content is gone.
	ErrExpired = errors.New("the change set has expired")
)

// Default bounds of a store.
const (
	defaultBytes = 1 << 30
	defaultAge   = 24 * time.Hour
)

// Open opens the store, finishes the sets that a dead server left with a
// complete journal, and drops those without one. It does not wait for turns
// that are taken: who takes such a turn next finishes them.
func Open(ctx context.Context, o Options) (*Store, error) {
	names, err := protect.New(o.Protect, o.Unprotect)
	if err != nil {
		return nil, err
	}
	s := &Store{
		sets: filepath.Join(o.Dir, "sets"), open: filepath.Join(o.Dir, "open"), turns: filepath.Join(o.Dir, "turns"),
		maxBytes: cmp.Or(o.MaxBytes, defaultBytes), maxAge: cmp.Or(o.MaxAge, defaultAge),
		names: names, gitConfig: o.GitConfig, log: o.Logger, now: o.Now,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	for _, own := range append(slices.Clone(o.Own), o.Dir) {
		if resolved, err := filepath.EvalSymlinks(own); err == nil {
			own = resolved
		}
		s.own = append(s.own, own)
	}
	for _, dir := range []string{o.Dir, s.sets, s.open, s.turns} {
		if err := private(dir); err != nil {
			return nil, fmt.Errorf("opening the store of changes: %w", err)
		}
	}
	for _, r := range s.unfinished() {
		t, err := s.begin(ctx, Run{}, false, nil, []Folder{{Path: r.Folder}})
		switch {
		case err == nil:
			err = t.Close()
		case errors.Is(err, errTaken):
			continue // by a living server, which finishes its own set or the next one does
		}
		if err != nil {
			s.log.Warn("a change set could not be finished", "set", r.ID, "dir", r.Folder, "err", err)
			if s.now().After(r.Expires.Add(s.maxAge)) { // its folder is gone for good
				_ = os.RemoveAll(s.dir(r.ID))
			}
		}
	}
	s.expire()
	return s, nil
}

// private makes a folder that only the user may enter, or checks that it is one.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%q is not a folder that only you may use (mode %#o): change its mode to 0700", dir, info.Mode().Perm())
	}
	return nil
}

// record returns a new set.
func (s *Store) record(run Run, f *folder) *record {
	now := s.now()
	id := newID(now)
	return &record{
		Set:   Set{ID: id, Run: run, Folder: f.path, Made: now, Expires: now.Add(s.maxAge)},
		Stage: stageBegin + id, Dev: f.meta.Dev, Ino: f.meta.Ino,
	}
}

// newID returns a name for a set that sorts by its time.
func newID(now time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return now.UTC().Format("20060102-150405.000000") + "-" + hex.EncodeToString(b[:])
}

// unfinished returns the sets that are not settled.
func (s *Store) unfinished() []*record {
	var list []*record
	entries, _ := os.ReadDir(s.open) // what cannot be read now is finished by a later start
	for _, e := range entries {
		r, err := s.load(e.Name())
		switch {
		case err == nil && r.Phase == settled, errors.Is(err, fs.ErrNotExist):
			_ = os.Remove(filepath.Join(s.open, e.Name()))
		case err != nil:
			s.log.Warn("a change set cannot be read", "set", e.Name(), "err", err)
		default:
			list = append(list, r)
		}
	}
	return list
}

// recoverIn finishes the sets of a folder whose turn the caller has.
func (s *Store) recoverIn(f *folder) error {
	for _, r := range s.unfinished() {
		if r.Folder != f.path || r.Dev != f.meta.Dev || r.Ino != f.meta.Ino {
			continue
		}
		var err error
		if r.Phase == staging {
			err = s.drop(f, r)
		} else {
			err = s.finishSet(f, r)
		}
		if err != nil {
			return fmt.Errorf("finishing change set %s: %w", r.ID, err)
		}
		_ = ignoreMissing(os.Remove(filepath.Join(s.open, r.ID)))
		s.log.Info("finished a change set that another server left", "set", r.ID, "dir", r.Folder, "phase", string(r.Phase))
	}
	return nil
}

// recoverNear finishes what is unfinished in folders above and below.
func (s *Store) recoverNear(ctx context.Context, folders []*folder) {
	for _, r := range s.unfinished() {
		for _, f := range folders {
			if r.Folder != f.path && touches(filepath.ToSlash(r.Folder), filepath.ToSlash(f.path)) {
				if t, err := s.begin(ctx, Run{}, false, nil, []Folder{{Path: r.Folder}}); err == nil {
					_ = t.Close()
				}
			}
		}
	}
}

// touches reports whether a and b are the same path, or one is below the other.
func touches(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// changing calls do while no other process changes the records of settled sets.
func (s *Store) changing(do func() error) error {
	l := s.lockFile("records")
	if err := l.Lock(); err != nil {
		return err
	}
	defer l.Close()
	return do()
}

// records returns all settled sets that can be read, the newest first.
func (s *Store) records() []*record { return s.read(s.load) }

// heads returns them without their ops: what a run left in one set does not make
// each later call slower.
func (s *Store) heads() []*record { return s.read(s.loadHead) }

func (s *Store) read(load func(id string) (*record, error)) []*record {
	var list []*record
	entries, _ := os.ReadDir(s.sets)
	for _, e := range slices.Backward(entries) {
		if r, err := load(e.Name()); err == nil {
			if r.Phase == settled {
				list = append(list, r)
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("a change set cannot be read", "set", e.Name(), "err", err)
		}
	}
	return list
}

// used returns how many bytes all settled sets keep.
func (s *Store) used() (n int64) {
	for _, r := range s.heads() {
		n += r.Bytes
	}
	return n
}

// expire removes what is too old: first the content, and later the set.
func (s *Store) expire() {
	now := s.now()
	_ = s.changing(func() error {
		for _, r := range s.heads() {
			switch {
			case now.After(r.Expires.Add(s.maxAge)):
				_ = os.RemoveAll(s.dir(r.ID))
			case now.After(r.Expires) && !r.Expired:
				r, err := s.load(r.ID)
				if err != nil {
					continue // it is told of where it is listed
				}
				r.Expired = true
				r.UndoLost = "it has expired"
				_ = s.empty(r, newName, oldName)
			}
		}
		return nil
	})
	// A program that was killed before it noted that a set is open had staged
	// nothing of it.
	entries, _ := os.ReadDir(s.sets)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) <= s.maxAge {
			continue
		}
		if _, err := os.Lstat(filepath.Join(s.open, e.Name())); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if r, err := s.load(e.Name()); errors.Is(err, fs.ErrNotExist) || err == nil && r.Phase == staging {
			_ = os.RemoveAll(s.dir(e.Name()))
		}
	}
}

// empty removes content of a set and saves it.
func (s *Store) empty(r *record, kinds ...string) error {
	for _, kind := range kinds {
		if err := os.RemoveAll(filepath.Join(s.dir(r.ID), kind)); err != nil {
			return err
		}
		for i := range r.Ops {
			if o := &r.Ops[i]; kind == newName {
				o.HasNew = false
			} else {
				o.HasOld = false
			}
		}
	}
	r.Bytes = 0
	for i := range r.Ops {
		if o := &r.Ops[i]; o.HasNew {
			r.Bytes += o.Meta.Blocks
		}
	}
	return s.save(r)
}

// makeRoom drops the undo data of the oldest sets for what r holds. What still
// does not fit is refused.
func (s *Store) makeRoom(r *record) error {
	var need int64
	for i := range r.Ops {
		if o := &r.Ops[i]; o.State == Held && o.regular() {
			need += o.Meta.Blocks
		}
	}
	if need == 0 {
		return nil
	}
	used := s.used()
	if used+need > s.maxBytes {
		err := s.changing(func() error {
			for _, old := range slices.Backward(s.records()) {
				if used+need <= s.maxBytes {
					break
				}
				if !slices.ContainsFunc(old.Ops, func(o op) bool { return o.HasOld }) {
					continue
				}
				before := old.Bytes
				old.UndoLost = "what was there before made room for newer changes"
				if err := s.empty(old, oldName); err != nil {
					return err
				}
				used -= before - old.Bytes
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range r.Ops {
		o := &r.Ops[i]
		if o.State != Held || !o.regular() {
			continue
		}
		if used += o.Meta.Blocks; used > s.maxBytes {
			used -= o.Meta.Blocks
			o.State, o.Why, o.Reason = Refused, WhyRoom, o.Reason+"; and there is no room to keep it until you have seen it"
		}
	}
	return nil
}

// tell notes in the set that r applied or took back what became of its changes.
func (s *Store) tell(r *record) error {
	id, state := r.From, Applied
	if r.Undoes != "" {
		id, state = r.Undoes, Undone
	}
	if id == "" {
		return nil
	}
	return s.changing(func() error {
		of, err := s.load(id)
		if err != nil {
			return ignoreMissing(err)
		}
		at := map[string][]*op{}
		for i := range of.Ops {
			if o := &of.Ops[i]; o.By == "" && (o.State == Held || o.State == Applied) {
				at[o.Path] = append(at[o.Path], o)
			}
		}
		for i := range r.Ops {
			if o := &r.Ops[i]; o.State == Applied {
				for _, was := range at[o.Path] {
					was.State, was.By, was.Why, was.Reason = state, r.ID, "", ""
				}
			}
		}
		return s.save(of)
	})
}

// List returns all sets, the newest first, and removes what expired.
func (s *Store) List() ([]*Set, error) {
	s.expire()
	var sets []*Set
	for _, r := range s.records() {
		sets = append(sets, r.list())
	}
	return sets, nil
}

// Get returns one set, by its ID or an unambiguous beginning of it. Its error
// matches [ErrNotFound].
func (s *Store) Get(id string) (*Set, error) {
	r, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return r.list(), nil
}

func (s *Store) find(id string) (*record, error) {
	entries, _ := os.ReadDir(s.sets)
	var found *record
	for _, e := range entries {
		if id == "" || !strings.HasPrefix(e.Name(), id) {
			continue
		}
		r, err := s.load(e.Name())
		switch {
		case err != nil || r.Phase != settled:
		case r.ID == id:
			return r, nil
		case found != nil:
			return nil, fmt.Errorf("%w: %q is the beginning of several", ErrNotFound, id)
		default:
			found = r
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return found, nil
}
