package apply

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// takeLocks takes git's own locks for the ops on git's data. If git is at work, these
// ops are held.
func (w *Work) takeLocks() error {
	r := w.record
	if !slices.ContainsFunc(r.Ops, func(o record.Op) bool { return o.Git && o.State == record.Applied }) {
		r.Locks = nil
		return nil
	}
	for i, at := range r.Locks {
		err := w.takeLock(at, "lock-"+strconv.Itoa(i))
		if errors.Is(err, fs.ErrExist) {
			for _, taken := range r.Locks[:i] {
				if err := unlock(w.folder, taken, r.ID); err != nil {
					return err
				}
			}
			r.Locks = nil
			r.HoldGit(record.WhyConflict, "git is at work in this folder, or left the lock "+at)
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder that is yet to be made has no locks
			return err
		}
	}
	return nil
}

// takeLock makes a lock file that names its owner from the first moment, so that a
// killed program's lock can be told from git's.
func (w *Work) takeLock(at, slot string) error {
	dir, name := tree.Split(at)
	d, err := w.folder.Walk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	file, err := w.stage.Create(slot)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lockText(w.record.ID))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return w.stage.Move(slot, d, name)
}

// group carries out the ops on git's data, all or none. Objects that were already
// written stay: nothing refers to them.
func (w *Work) group() {
	for i := range w.record.Ops {
		o := &w.record.Ops[i]
		if !o.Git || o.State != record.Applied {
			continue
		}
		err := w.do(o)
		if err == nil {
			w.result(o, nil)
			continue
		}
		for j := range i {
			if p := &w.record.Ops[j]; p.Git && p.State == record.Applied {
				err = errors.Join(err, w.revert(p))
			}
		}
		w.result(o, err)
		w.record.HoldGit(o.Why, o.Reason)
		return
	}
}

// revert undoes an op that was carried out. A file that is no longer the set's stays.
func (w *Work) revert(o *record.Op) error {
	if o.Kind == record.KindMkdir || o.Internal && o.Kind == record.KindCreate {
		return nil
	}
	dir, name := tree.Split(o.Path)
	d, err := w.folder.Walk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if o.Kind == record.KindRemove {
		return w.stage.Move(o.Slot, d, name)
	}
	now, err := d.Lstat(name)
	if err != nil || now.Ino != o.Staged {
		return err
	}
	if o.Was == nil {
		return d.Move(name, w.stage, o.Slot)
	}
	if w.moved(o) {
		if err := d.Move(name, w.stage, o.Slot); err != nil {
			return err
		}
		return w.stage.Move(aside(o), d, name)
	}
	return w.stage.Swap(o.Slot, d, name)
}
