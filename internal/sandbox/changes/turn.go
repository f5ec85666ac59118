package changes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// A Run names what made changes. Its fields are only stored and shown.
type Run struct {
	ID   string `json:"id"`
	Pack string `json:"pack,omitempty"`
	Tool string `json:"tool,omitempty"`
}

// A Folder is a folder of the user's that a run may change.
type Folder struct {
	Path string // absolute; links in it are followed once, by Begin
	// Git is not nil for a folder that is a git folder, or part of one, outside
	// of the project: of a worktree or a submodule. All of it is protected.
	Git *GitFolder
}

// A GitFolder says where git's files are below a Folder, with slashes; "." is
// the Folder itself.
type GitFolder struct {
	Dir    string // with HEAD and index: "worktrees/x"
	Common string // with objects and refs: "."
}

// A Holder is a run that has the turn in a folder.
type Holder struct {
	Run    Run       `json:"run"`
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`
	Folder string    `json:"folder"`
}

// A Turn is the right of one run to change its folders. It excludes all runs of
// this user, in any server, that may change a folder which is the same, above
// or below. It ends with Close, or with the process. Its methods are not safe
// for concurrent use.
type Turn struct {
	store   *Store
	run     Run
	folders []*folder
	lock    *lock
}

// A folder is an open folder of a turn.
type folder struct {
	path string // with links resolved
	dir  *tree.Dir
	meta tree.Meta
	// marker is later than what was changed before the turn, and not later than
	// what is changed after; 0 where the system has no times of change.
	marker int64
	git    *GitFolder
	own    []string // paths in the folder that are in Options.Own
	whole  bool     // the folder itself is
}

// Begin waits for the turn in all of the folders, finishes what a dead server
// left unfinished in them, and marks the moment: what the user changes from
// now on wins over the run.
//
// A run takes all of its folders at once: two turns, one after the other, could
// wait for each other.
//
// waiting, if it is not nil, is called once with a holder when the turn is not
// free. When ctx ends first, the error is ctx's cause, wrapped with the holder.
func (s *Store) Begin(ctx context.Context, run Run, waiting func(Holder), folders ...Folder) (*Turn, error) {
	return s.begin(ctx, run, true, waiting, folders)
}

func (s *Store) begin(ctx context.Context, run Run, wait bool, waiting func(Holder), folders []Folder) (t *Turn, err error) {
	t = &Turn{store: s, run: run}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
			t = nil
		}
	}()
	var paths []string
	for _, f := range folders {
		open, err := s.openFolder(f)
		if err != nil {
			return t, fmt.Errorf("opening %q: %w", f.Path, err)
		}
		t.folders = append(t.folders, open)
		paths = append(paths, open.path)
	}
	if wait {
		s.recoverNear(ctx, t.folders)
	}
	list, err := wants(paths)
	if err != nil {
		return t, fmt.Errorf("taking the turn: %w", err)
	}
	c := card{Holder: Holder{Run: run, PID: os.Getpid(), Since: s.now()}, Wants: list}
	if len(paths) > 0 {
		c.Folder = paths[0]
	}
	if t.lock, err = s.acquire(ctx, c, wait, waiting); err != nil {
		return t, err
	}
	for _, f := range t.folders {
		// Between opening and having the turn, the name may have come to mean another
		// folder. The one that is locked is the one of the name then.
		if now, err := os.Stat(f.path); err != nil || !f.meta.SameAs(now) {
			return t, errors.Join(fmt.Errorf("%q is not the folder any more that it was: try again", f.path), err)
		}
		if err := s.recoverIn(f); err != nil {
			return t, err
		}
		if f.marker, err = f.dir.Moment(); err != nil {
			return t, fmt.Errorf("marking the moment in %q: %w", f.path, err)
		}
	}
	return t, nil
}

func (s *Store) openFolder(want Folder) (*folder, error) {
	if !filepath.IsAbs(want.Path) {
		return nil, errors.New("its path is not absolute")
	}
	resolved, err := filepath.EvalSymlinks(want.Path)
	if err != nil {
		return nil, err
	}
	dir, err := tree.Open(resolved)
	if err != nil {
		return nil, err
	}
	f := &folder{path: resolved, dir: dir, git: want.Git}
	if f.meta, err = dir.Stat(); err != nil {
		_ = dir.Close()
		return nil, err
	}
	for _, own := range s.own {
		if rel, err := filepath.Rel(resolved, own); err == nil && filepath.IsLocal(rel) && rel != "." {
			f.own = append(f.own, filepath.ToSlash(rel))
		}
		if rel, err := filepath.Rel(own, resolved); err == nil && (rel == "." || filepath.IsLocal(rel)) {
			f.whole = true
		}
	}
	return f, nil
}

// Handle returns the open handle of folder i of Begin, which stays the same
// folder when its name comes to mean another. The Turn owns it.
func (t *Turn) Handle(i int) *os.File { return t.folders[i].dir.File() }

// Path returns the path of folder i with links resolved.
func (t *Turn) Path(i int) string { return t.folders[i].path }

// CopyLimits bound a copy. Zero means 64 MiB and 5,000 names.
type CopyLimits struct {
	Bytes int64 // of files that the file system did not clone
	Names int
	// CloneOnly fails with ErrNoClone at the first file that cannot be cloned.
	CloneOnly bool
}

// Errors of [Turn.Copy], for which the caller chooses another layer.
var (
	ErrTooLarge = errors.New("the folder is too large to be copied")
	ErrNoClone  = errors.New("the file system does not clone files")
)

// A Layer is where a run wrote instead of a folder. Of the two formats, the
// zero Copy is an overlay's upper folder, mounted with "userxattr" and without
// redirect_dir and metacopy.
type Layer struct {
	Folder int // which of Begin
	// Dir is the overlay's upper folder, or the changed copy. It may be in another
	// mount namespace: only the handle is used (on systems other than Linux, its
	// name). Finish may change modes in it to read it, and does not close it.
	Dir *os.File
	// Copy is what the copy held before; nil: Dir is an overlay's upper folder.
	Copy *Copy
}

// An Ending says how a run ended, and what the user allowed for it.
type Ending struct {
	Killed   string // why it did not end by itself: "the time limit"; empty: it did
	Review   bool   // hold every change
	GitWrite bool   // commits come back as git's data
}

// Finish makes a set of each layer that holds changes and applies what may be
// applied. Every process of the run must have ended. It returns the sets, also
// those that are wholly held or refused, in the order of the layers.
//
// An error means that for at least one layer nothing was applied and nothing is
// kept: its folder is as it was. The sets of other layers are returned beside
// it. When a set is committed and the system fails after that, the set is
// returned as well, and the next turn in its folder finishes it.
//
// ctx must outlive the run: what is not committed when it ends is lost.
func (t *Turn) Finish(ctx context.Context, end Ending, layers ...Layer) ([]*Set, error) {
	var sets []*Set
	var failed []error
	for _, l := range layers {
		set, err := t.finish(ctx, end, l)
		if err != nil {
			failed = append(failed, fmt.Errorf("the changes to %q were not applied: %w", t.folders[l.Folder].path, err))
		}
		if set != nil {
			sets = append(sets, set)
		}
	}
	return sets, errors.Join(failed...)
}

func (t *Turn) finish(ctx context.Context, end Ending, l Layer) (*Set, error) {
	f := t.folders[l.Folder]
	up, err := tree.From(l.Dir)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	r := &reading{ctx: ctx, folder: f, names: t.store.names, gitConfig: t.store.gitConfig, up: up, copy: l.Copy, end: end}
	if err := r.read(); err != nil {
		return nil, err
	}
	r.commits()
	r.classify()
	if len(r.ops) == 0 {
		return nil, nil
	}
	rec := t.store.record(t.run, f)
	rec.Ops, rec.Locks = r.ops, r.locks
	return t.store.carryOut(ctx, f, rec)
}

// Close ends the turn. It may be called more than once.
func (t *Turn) Close() error {
	var errs []error
	for _, f := range t.folders {
		errs = append(errs, f.dir.Close())
	}
	t.folders = nil
	if t.lock != nil {
		t.lock.release()
		t.lock = nil
	}
	return errors.Join(errs...)
}
