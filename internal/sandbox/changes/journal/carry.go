package journal

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/apply"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// Commit stages and commits a set whose ops have their states. After an error, it leaves
// nothing.
func (j *Journal) Commit(ctx context.Context, folder *tree.Dir, r *record.Record) error {
	if err := os.Mkdir(j.dir(r.ID), 0o700); err != nil {
		return err
	}
	r.Phase = record.Staging
	err := j.save(begun(r))
	if err == nil {
		err = os.WriteFile(filepath.Join(j.open, r.ID), nil, 0o600)
	}
	if err == nil {
		err = errors.Join(syncDir(j.sets), syncDir(j.open))
	}
	if err == nil {
		err = j.stage(ctx, folder, r)
	}
	if err == nil {
		r.Phase = record.Committed
		err = j.save(r)
	}
	if err != nil {
		return errors.Join(err, j.drop(folder, r))
	}
	return nil
}

// begun returns the record before anything is staged.
func begun(r *record.Record) *record.Record {
	b := *r
	b.Ops = nil
	return &b
}

// Finish carries out a committed set, or continues where that was interrupted.
func (j *Journal) Finish(folder *tree.Dir, r *record.Record) error {
	w, err := apply.Resume(folder, r)
	if err != nil {
		return err
	}
	defer w.Close()
	if r.Phase == record.Committed {
		w.Run()
		r.Phase = record.Decided
		if err := j.save(r); err != nil {
			return err
		}
	}
	if err := j.collect(folder, w, r); err != nil {
		return err
	}
	r.Phase = record.Settled
	if err := j.save(r); err != nil {
		return err
	}
	// Another process may already have noticed that the set is settled; see Unfinished.
	return tree.IgnoreMissing(os.Remove(filepath.Join(j.open, r.ID)))
}

// drop removes everything that an uncommitted set left.
func (j *Journal) drop(folder *tree.Dir, r *record.Record) error {
	if err := apply.Clear(folder, r); err != nil {
		return err // the next start tries again
	}
	return errors.Join(os.RemoveAll(j.dir(r.ID)), tree.IgnoreMissing(os.Remove(filepath.Join(j.open, r.ID))))
}

// stage writes everything that the ops need to disk: content to apply, beside the
// folder's files, and held content, in the store.
func (j *Journal) stage(ctx context.Context, folder *tree.Dir, r *record.Record) error {
	keep := filepath.Join(j.dir(r.ID), newName)
	if err := os.Mkdir(keep, 0o700); err != nil {
		return err
	}
	kept, err := tree.Open(keep)
	if err != nil {
		return err
	}
	defer kept.Close()
	w, err := apply.Prepare(folder, r)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := j.makeRoom(ctx, r); err != nil {
		return err
	}
	if err := w.Stage(ctx, kept); err != nil {
		return err
	}
	r.Bytes += newBytes(r)
	return nil
}

// collect moves the rest of the stage to the store: old content, so that the set can
// be undone, and new content that ended up held. It can be repeated.
func (j *Journal) collect(folder *tree.Dir, w *apply.Work, r *record.Record) error {
	used := j.used()
	person := r.From != "" || r.Undoes != "" // for a run's set, makeRoom made room
	for i := range r.Ops {
		o := &r.Ops[i]
		switch {
		case o.State == record.Held && o.Regular():
			if j.has(r, newName, o) {
				o.HasNew = true
			} else if name, m, ok := w.New(o); ok {
				if err := j.keep(w, name, &m, r, newName, o.Slot); err != nil {
					return err
				}
				o.HasNew = true
			}
		case o.Replaces():
			if j.has(r, oldName, o) {
				o.HasOld = true
				break
			}
			name, m, ok := w.Old(o)
			if !ok {
				break
			}
			if person && used+r.Bytes+m.Blocks > j.maxBytes {
				r.UndoLost = "there is no room for what was there before"
			} else if err := j.keep(w, name, &m, r, oldName, o.Slot); err != nil {
				r.UndoLost = "what was there before could not be kept: " + apply.Reason(err)
			} else {
				o.HasOld = true
			}
		}
	}
	if err := apply.Clear(folder, r); err != nil {
		return err
	}
	return j.tell(r)
}

// has reports whether a program moved the content to the store and was killed before
// recording that. If so, it counts the content.
func (j *Journal) has(r *record.Record, kind string, o *record.Op) bool {
	if kind == newName && o.HasNew {
		return true
	}
	info, err := os.Lstat(filepath.Join(j.dir(r.ID), kind, o.Slot))
	if err != nil {
		return false
	}
	r.Bytes += info.Size()
	return true
}

// keep moves a file from the stage into one of the set's folders.
func (j *Journal) keep(w *apply.Work, name string, m *tree.Meta, r *record.Record, kind, slot string) error {
	dir := filepath.Join(j.dir(r.ID), kind)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	r.Bytes += m.Blocks
	return w.Keep(name, m, to, slot, kind == newName)
}
