package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/journal"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/turns"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Options say where a store is and how much it keeps.
type Options struct {
	// Dir is the private folder for sets, journals and turns. Open makes it with
	// mode 0700. All servers of a user share it.
	Dir      string
	MaxBytes int64         // of held content and undo data; 0: 1 GiB
	MaxAge   time.Duration // after which they are removed; 0: 24 hours
	// Protect lists more protected patterns, as in the table of package protect.
	// Unprotect lists patterns of that table that do not count, spelled the same.
	Protect, Unprotect []string
	// Own lists absolute paths that no run may change: pack roots, and this program's
	// own files.
	Own []string
	// GitConfig lists the user's files with git settings, such as ~/.gitconfig. Files
	// that these or a repository's settings name are protected.
	GitConfig []string
	Home      string // the user's home folder, for ~/ in these; empty: not known
	// Waiting, if not nil, is called when Apply, Discard or Undo has to wait for a run
	// that works in the folder.
	Waiting func(Holder)
	// Logger, if not nil, logs what recovery did.
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// A Store stores the change sets of one user. Its methods are safe for concurrent use,
// even by several processes.
type Store struct {
	journal *journal.Journal
	turns   *turns.Turns
	names   *protect.Names
	own     []string // with links resolved
	git     []string // Options.GitConfig
	home    string   // Options.Home
	waiting func(Holder)
	log     *slog.Logger
	now     func() time.Time
}

// Errors that callers distinguish.
var (
	ErrNotFound = errors.New("no such change set")
	// ErrExpired says that the content of a set was removed.
	ErrExpired = errors.New("the change set has expired")
)

// Default bounds of a store.
const (
	defaultBytes = 1 << 30
	defaultAge   = 24 * time.Hour
)

// Open opens the store. It finishes sets that a dead server left with a complete
// journal, and drops those without one. It does not wait for turns that are in use: the
// next holder of such a turn finishes its sets.
func Open(ctx context.Context, o Options) (*Store, error) {
	names, err := protect.New(o.Protect, o.Unprotect)
	if err != nil {
		return nil, err
	}
	s := &Store{names: names, git: o.GitConfig, home: o.Home, waiting: o.Waiting, log: o.Logger, now: o.Now}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	for _, own := range append(slices.Clone(o.Own), o.Dir) {
		s.own = append(s.own, paths.WithoutLinks(own))
	}
	if s.turns, err = turns.Open(filepath.Join(o.Dir, "turns")); err == nil {
		s.journal, err = journal.Open(journal.Options{
			Dir: o.Dir, Turns: s.turns, MaxBytes: cmp.Or(o.MaxBytes, defaultBytes), MaxAge: cmp.Or(o.MaxAge, defaultAge), Logger: s.log, Now: s.now,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store of changes: %w", err)
	}
	for _, r := range s.journal.Unfinished() {
		t, err := s.begin(ctx, Run{}, false, nil, []Folder{{Path: r.Folder}})
		switch {
		case err == nil:
			err = t.Close()
		case errors.Is(err, turns.ErrTaken):
			continue // by a running server: it or the next holder finishes the set
		}
		if err != nil {
			s.log.Warn("a change set could not be finished", "set", r.ID, "dir", r.Folder, "err", err)
			s.journal.Forget(r)
		}
	}
	s.journal.Expire()
	return s, nil
}

// near reports whether a set's folder is one of folders, or above or below one.
func near(r *record.Record, folders []*folder) bool {
	return slices.ContainsFunc(folders, func(f *folder) bool {
		return r.Folder != f.Path && touches(filepath.ToSlash(r.Folder), filepath.ToSlash(f.Path))
	})
}

// recoverNear finishes the sets of folders above and below whose turns are free.
func (s *Store) recoverNear(ctx context.Context, unfinished []*record.Record, folders []*folder) {
	for _, r := range unfinished {
		if !near(r, folders) {
			continue
		}
		if t, err := s.begin(ctx, Run{}, false, nil, []Folder{{Path: r.Folder}}); err == nil {
			_ = t.Close()
		}
	}
}

// touches reports whether a and b are the same path or one is below the other.
func touches(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// List returns all sets, newest first, and removes expired ones.
func (s *Store) List() ([]*Set, error) {
	s.journal.Expire()
	var sets []*Set
	for _, r := range s.journal.Records() {
		sets = append(sets, r.List())
	}
	return sets, nil
}

// Get returns the set with an ID, or an unambiguous prefix of it. The error for a
// missing one matches [ErrNotFound].
func (s *Store) Get(id string) (*Set, error) {
	r, err := s.find(id)
	if err != nil {
		return nil, err
	}
	return r.List(), nil
}

func (s *Store) find(id string) (*record.Record, error) {
	switch found := s.journal.Find(id); len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%w: %q is the beginning of several", ErrNotFound, id)
}
