package changes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/layer"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/turns"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// A Folder is one of the user's folders that a run may change.
type Folder struct {
	Path string // absolute; links in it are followed once, by Begin
	// Git is set for a git folder, or a part of one, outside the project: that of a
	// worktree or a submodule. Everything in it is protected.
	Git *GitFolder
}

// A Turn is one run's right to change its folders. While it lasts, no other run of this
// user, in any server, may change the same folders, or those above or below. It ends
// with Close, or with the process. Its methods are not safe for concurrent use.
type Turn struct {
	store   *Store
	run     Run
	folders []*folder
	lock    *turns.Lock
	clock   *tree.Clock // from before the folders' markers; nil: not watched yet
}

// A folder is an open folder of a turn.
type folder struct {
	layer.Folder
	meta tree.Meta
}

// Begin waits for the turn in all of the folders and finishes what a dead server left
// unfinished in them. From then on, the user's own changes win over the run's.
//
// A run takes all of its folders at once: two turns, one after the other, could
// wait for each other.
//
// If the turn is not free, Begin calls waiting once with its holder, unless waiting is
// nil. If ctx ends first, the error is a [*WaitError].
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
		paths = append(paths, open.Path)
	}
	holder := Holder{Run: run, PID: os.Getpid()}
	if len(paths) > 0 {
		holder.Folder = paths[0]
	}
	take := func() (unfinished []*record.Record, err error) {
		if t.lock, err = s.turns.Take(ctx, holder, wait, waiting, paths...); err != nil {
			return nil, err
		}
		return s.journal.Unfinished(), nil
	}
	waiting = once(waiting)
	unfinished, err := take()
	if err != nil {
		return t, err
	}
	if wait && slices.ContainsFunc(unfinished, func(r *record.Record) bool { return near(r, t.folders) }) {
		// No run works in these folders now, and this turn keeps others out.
		t.lock.Release()
		s.recoverNear(ctx, unfinished, t.folders)
		if unfinished, err = take(); err != nil {
			return t, err
		}
	}
	t.clock = tree.WatchClock()
	for _, f := range t.folders {
		// Before we got the turn, another folder may have taken the name. The lock is for
		// the folder that has the name now.
		if now, err := os.Stat(f.Path); err != nil || !f.meta.SameAs(now) {
			return t, errors.Join(fmt.Errorf("%q is not the folder any more that it was: try again", f.Path), err)
		}
		if err := s.journal.Recover(unfinished, f.Path, f.Dir, f.meta); err != nil {
			return t, err
		}
		if f.Marker, err = t.moment(f); err != nil {
			return t, fmt.Errorf("marking the moment in %q: %w", f.Path, err)
		}
	}
	return t, nil
}

// once returns a function that calls do only at its first call.
func once(do func(Holder)) func(Holder) {
	if do == nil {
		return nil
	}
	var first sync.Once
	return func(h Holder) { first.Do(func() { do(h) }) }
}

// moment returns the present time by the clock of the folder's file system. It uses the
// turn's lock file if that is on the same file system, which is faster than making a
// file.
func (t *Turn) moment(f *folder) (int64, error) {
	if lock, err := t.lock.File(); err == nil {
		defer lock.Close()
		if m, err := tree.StatFile(lock); err == nil && m.Dev == f.meta.Dev && m.Ctime != 0 {
			return tree.Moment(lock)
		}
	}
	return f.Dir.Moment()
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
	f := &folder{Folder: layer.Folder{Path: resolved, Dir: dir, Git: want.Git, InGit: InGit(resolved), Names: s.names, GitConfig: s.git, Home: s.home}}
	if f.meta, err = dir.Stat(); err != nil {
		_ = dir.Close()
		return nil, err
	}
	for _, own := range s.own {
		if rel, ok := paths.Below(resolved, own); ok && rel != "." {
			f.Own = append(f.Own, filepath.ToSlash(rel))
		}
		if _, ok := paths.Below(own, resolved); ok {
			f.Whole = true
		}
	}
	return f, nil
}

// Handle returns the open handle of folder i of Begin. It stays the same folder even if
// the folder is renamed. The Turn owns it.
func (t *Turn) Handle(i int) *os.File { return t.folders[i].Dir.File() }

// Path returns the path of folder i with links resolved.
func (t *Turn) Path(i int) string { return t.folders[i].Path }

// Copy copies folder i into the empty folder to, with clones where the file system
// has them: regular files, links, folders, modes, times, attributes and holes. Other
// things, and files that may not be read, are left out. On failure, the partial copy
// stays in to for the caller to remove.
func (t *Turn) Copy(ctx context.Context, i int, to *os.File, limits CopyLimits) (*Copy, error) {
	return t.folders[i].Copy(ctx, to, limits)
}

// A Layer is where a run wrote instead of a folder. It is a copy, or, if Copy is nil, an
// overlay's upper folder, mounted with "userxattr" and without redirect_dir and metacopy.
type Layer struct {
	Folder int // which of Begin
	// Dir is the overlay's upper folder, or the changed copy. It may be in another
	// mount namespace: only the handle is used (on systems other than Linux, its
	// name). Finish may change modes in it to read it, and does not close it.
	Dir *os.File
	// Copy describes the copy before the run; nil if Dir is an overlay's upper folder.
	Copy *Copy
}

// Finish makes a set for each layer that has changes, and applies the changes that may be
// applied. Every process of the run must have ended. It returns all sets in the order of
// the layers, even if nothing was applied.
//
// An error means that for at least one layer nothing was applied and nothing is kept: its
// folder is as it was. The sets of other layers are returned with it. If the system fails
// after a set was committed, that set is returned, too, and the next turn in its folder
// finishes it.
//
// ctx must outlive the run: changes that are not committed when it ends are lost.
func (t *Turn) Finish(ctx context.Context, end Ending, layers ...Layer) ([]*Set, error) {
	var sets []*Set
	var failed []error
	for _, l := range layers {
		set, err := t.finish(ctx, end, l)
		if err != nil {
			failed = append(failed, fmt.Errorf("the changes to %q were not applied: %w", t.folders[l.Folder].Path, err))
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
	ops, locks, err := layer.Read(ctx, &f.Folder, up, l.Copy, end)
	if err == nil && t.clock.WasSet() {
		f.Clockless = true
		ops, locks, err = layer.Read(ctx, &f.Folder, up, l.Copy, end)
	}
	if err != nil || len(ops) == 0 {
		return nil, err
	}
	r := t.store.journal.New(t.run, f.Path, f.meta)
	r.Ops, r.Locks = ops, locks
	return t.store.carryOut(ctx, f.Dir, r)
}

// carryOut commits a set and carries it out. If it returns an error and no set,
// nothing was applied and nothing is kept.
//
// The caller has the folder's turn.
func (s *Store) carryOut(ctx context.Context, folder *tree.Dir, r *record.Record) (*Set, error) {
	if err := s.journal.Commit(ctx, folder, r); err != nil {
		return nil, err
	}
	// The set counts from here on, even if ctx ends.
	err := s.journal.Finish(folder, r)
	return r.List(), err
}

// Close ends the turn. It may be called more than once.
func (t *Turn) Close() error {
	var errs []error
	for _, f := range t.folders {
		errs = append(errs, f.Dir.Close())
	}
	t.folders = nil
	if t.clock != nil {
		errs = append(errs, t.clock.Close())
		t.clock = nil
	}
	if t.lock != nil {
		t.lock.Release()
		t.lock = nil
	}
	return errors.Join(errs...)
}
