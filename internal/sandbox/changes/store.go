package changes

import (
	"context"
	"errors"
	"log/slog"
	"time"
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
	// Logger hears of what recovery did; nil: nobody does.
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// A Store keeps the change sets of one user. Its methods are safe for
// concurrent use, also by several processes.
type Store struct{}

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("no such change set")
	// ErrExpired is for a set whose content is gone.
	ErrExpired = errors.New("the change set has expired")
)

// Open opens the store, finishes the sets that a dead server left with a
// complete journal, and drops those without one. It does not wait for turns
// that are taken: who takes such a turn next finishes them.
func Open(ctx context.Context, o Options) (*Store, error) { return nil, errors.ErrUnsupported }

// List returns all sets, the newest first, and removes what expired.
func (s *Store) List() ([]*Set, error) { return nil, errors.ErrUnsupported }

// Get returns one set, by its ID or an unambiguous beginning of it. Its error
// matches [ErrNotFound].
func (s *Store) Get(id string) (*Set, error) { return nil, errors.ErrUnsupported }

// A View is what a person sees of the held changes of a set.
type View struct {
	Set *Set
	// Text is a unified diff for text, and lines with sizes and digests for the
	// rest. It is escaped for terminals, and bounded: Cut says that it is not all.
	Text string
	Cut  bool
	// Token stands for exactly this view: an Apply with it may also replace what
	// the view showed as changed by the user meanwhile.
	Token string
}

// Show returns the view of a set's held changes against the folder as it is
// now; with paths, of those alone.
func (s *Store) Show(ctx context.Context, id string, paths ...string) (*View, error) {
	return nil, errors.ErrUnsupported
}

// Apply is a person's own act: it applies the held changes of a set, with
// paths those alone. Protected names are applied, what is refused never is,
// and in git folders only text that fits a view whole. A change is left held
// when the user's file is not the one that the run found; with the token of a
// view, when it is not the one of the view.
//
// It returns the new set, which can be undone, and the changes that stay held
// with their reasons.
func (s *Store) Apply(ctx context.Context, id, token string, paths ...string) (*Set, error) {
	return nil, errors.ErrUnsupported
}

// Discard drops the held changes of a set; with paths, those alone.
func (s *Store) Discard(ctx context.Context, id string, paths ...string) (*Set, error) {
	return nil, errors.ErrUnsupported
}

// Undo takes the applied changes of a set back, where nothing changed since.
// It returns a new set, in which what did change is held with its reason.
func (s *Store) Undo(ctx context.Context, id string) (*Set, error) {
	return nil, errors.ErrUnsupported
}
