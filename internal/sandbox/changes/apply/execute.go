package apply

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// Run carries out the ops, and records the outcome in each. It can continue an
// interrupted set, since the stage shows what each op did: the slot of a new file holds
// that file until it is in place, and then the file that was replaced; the slot of a
// removed file is empty until the file is in it.
func (w *Work) Run() {
	w.group()
	for i := range w.record.Ops {
		if o := &w.record.Ops[i]; !o.Git && o.State == record.Applied {
			w.result(o, w.do(o))
		}
	}
	for _, o := range slices.Backward(w.record.Ops) {
		// Adding files changes a folder's time, and may need a mode that the folder must
		// not keep.
		if o.State == record.Applied && o.Kind == record.KindMkdir {
			_ = w.meta(&o, true)
		}
	}
	for i := range w.record.Ops {
		if o := &w.record.Ops[i]; o.State == record.Applied {
			w.now(o)
		}
	}
	for dir := range w.touched {
		if d, err := w.folder.Walk(dir); err == nil {
			_ = d.Sync() // only the order on disk matters, which must be that of the ops
			_ = d.Close()
		}
	}
}

// A conflictError says that the user's folder is not as expected.
type conflictError string

func (e conflictError) Error() string { return string(e) }

// result records the outcome of an op.
func (w *Work) result(o *record.Op, err error) {
	if err == nil {
		dir, _ := tree.Split(o.Path)
		w.touched[dir] = true
		return
	}
	o.State, o.Why, o.Reason, o.Note = record.Held, record.WhyFailed, "it could not be applied: "+Reason(err), ""
	if c, ok := errors.AsType[conflictError](err); ok {
		o.Why, o.Reason = record.WhyConflict, string(c)
	}
	if w.record.From != "" { // it stays held in its original set
		o.State = record.Refused
	}
}

// Reason returns the system's text of an error, without names in the stage.
func Reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Op + ": " + pe.Err.Error()
	}
	return err.Error()
}

// now records the path's state after the op, so that undo can tell whether it is
// unchanged.
func (w *Work) now(o *record.Op) {
	dir, name := tree.Split(o.Path)
	d, err := w.folder.Walk(dir)
	if err != nil {
		return
	}
	defer d.Close()
	m, err := d.Lstat(name)
	if err != nil {
		return
	}
	mine := m.Ino == o.Staged && (m.IsDir() || m.Size == o.Meta.Size || o.Kind == record.KindGit)
	if o.Kind == record.KindMeta {
		mine = o.Was != nil && m.Ino == o.Was.Ino && m.Size == o.Was.Size
	}
	if o.Makes() && mine || o.Kind == record.KindMeta && mine {
		o.Now = &m
	}
}

// do carries out one op, unless it was done before.
func (w *Work) do(o *record.Op) error {
	dir, name := tree.Split(o.Path)
	d, err := w.folder.Walk(dir)
	if err != nil {
		if o.Kind == record.KindRemove || o.Kind == record.KindRmdir {
			if errors.Is(err, fs.ErrNotExist) || w.overtaken(o) {
				return nil
			}
		}
		return conflictError("the folder it is in is gone, or a link")
	}
	defer d.Close()
	switch {
	case o.Kind == record.KindRmdir:
		return w.rmdir(d, name, o)
	case o.Kind == record.KindRemove:
		return w.remove(d, name, o)
	case o.Kind == record.KindMeta:
		return w.meta(o, false)
	case o.Was == nil:
		return w.create(d, name, o)
	}
	return w.replace(d, name, o)
}

// overtaken reports whether a later op put something new at the path that o removes,
// or at a folder above. That op runs only after o, so o was carried out before the
// program was killed.
func (w *Work) overtaken(o *record.Op) bool {
	if w.makes == nil {
		w.makes = map[string]*record.Op{}
		for i := range w.record.Ops {
			if p := &w.record.Ops[i]; p.State == record.Applied && p.Makes() && p.Was == nil {
				w.makes[p.Path] = p
			}
		}
	}
	for at := o.Path; at != "."; at = path.Dir(at) {
		if p := w.makes[at]; p != nil && p.State == record.Applied {
			if m, err := w.staged(p.Slot); err == nil && m == nil {
				return true
			}
		}
	}
	return false
}

// staged describes the file in the op's slot, or returns nil.
func (w *Work) staged(slot string) (*tree.Meta, error) {
	if w.stage == nil {
		return nil, nil
	}
	m, err := w.stage.Lstat(slot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &m, err
}

func (w *Work) create(d *tree.Dir, name string, o *record.Op) error {
	m, err := w.staged(o.Slot)
	if err != nil || m == nil {
		return err // it is already in place
	}
	if o.Git {
		// An object is named by its content, and git's folders are shared: an existing one
		// is the same.
		if there, err := d.Lstat(name); err == nil && o.Internal && there.Type == o.Meta.Type {
			return nil
		}
	}
	if err := w.stage.Inherit(o.Slot, d); err != nil {
		return err
	}
	err = w.stage.Move(o.Slot, d, name)
	if errors.Is(err, fs.ErrExist) {
		return conflictError("something has its name by now")
	}
	return err
}

// replace exchanges the new content with the old and then checks what it got: if that
// is not the expected file, it puts it back.
func (w *Work) replace(d *tree.Dir, name string, o *record.Op) error {
	m, err := w.staged(o.Slot)
	if err != nil || m == nil {
		return err
	}
	if m.Ino == o.Staged && m.Type == o.Meta.Type && !w.moved(o) {
		now, err := d.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return conflictError(record.GoneMeanwhile)
		case err != nil:
			return err
		case !now.Same(o.Was):
			return conflictError(record.ChangedMeanwhile)
		}
		err = w.stage.Swap(o.Slot, d, name)
		if errors.Is(err, tree.ErrNoSwap) {
			return w.replaceInSteps(d, name, o)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return conflictError(record.GoneMeanwhile)
		}
		if err != nil {
			return err
		}
		if m, err = w.staged(o.Slot); err != nil || m == nil {
			return errors.Join(errors.New("what was there before cannot be examined"), err)
		}
	} else if w.moved(o) {
		return w.replaceInSteps(d, name, o)
	}
	if m.Moved(o.Was) {
		return nil
	}
	return w.putBack(d, name, o)
}

// putBack gives the user's own file its name again. If the user put another file
// there meanwhile, that is newer and stays.
func (w *Work) putBack(d *tree.Dir, name string, o *record.Op) error {
	now, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := w.stage.Move(o.Slot, d, name); err != nil {
			return err
		}
	case err != nil:
		return err
	case now.Ino == o.Staged:
		if err := w.stage.Swap(o.Slot, d, name); err != nil {
			return err
		}
		if m, err := w.staged(o.Slot); err == nil && m != nil && m.Ino != o.Staged {
			if err := w.stage.Swap(o.Slot, d, name); err != nil { // newer still
				return err
			}
		}
	}
	return conflictError(record.ChangedMeanwhile)
}

// aside returns the slot for the old file where two names cannot be exchanged.
func aside(o *record.Op) string { return o.Slot + ".old" }

// moved reports whether replaceInSteps took its first step.
func (w *Work) moved(o *record.Op) bool {
	m, err := w.staged(aside(o))
	return err != nil || m != nil
}

// replaceInSteps moves the old content away and then gives the new content its name.
// In between, nothing has the name.
func (w *Work) replaceInSteps(d *tree.Dir, name string, o *record.Op) error {
	if !w.moved(o) {
		if err := d.Move(name, w.stage, aside(o)); err != nil {
			return err
		}
	}
	old, err := w.staged(aside(o))
	if err != nil || old == nil {
		return errors.Join(errors.New("what was there before cannot be examined"), err)
	}
	m, err := w.staged(o.Slot)
	if err != nil || m == nil {
		return err
	}
	why := record.ChangedMeanwhile
	if old.Moved(o.Was) {
		err := w.stage.Move(o.Slot, d, name)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		why = "something has its name by now"
	}
	if err := w.stage.Move(aside(o), d, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return conflictError(why)
}

// remove moves a file away and then checks what it got.
func (w *Work) remove(d *tree.Dir, name string, o *record.Op) error {
	m, err := w.staged(o.Slot)
	if err != nil {
		return err
	}
	if m == nil {
		now, err := d.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !now.Same(o.Was):
			return conflictError(record.ChangedMeanwhile)
		}
		if err := d.Move(name, w.stage, o.Slot); err != nil {
			return tree.IgnoreMissing(err)
		}
		if m, err = w.staged(o.Slot); err != nil || m == nil {
			return errors.Join(errors.New("what was removed cannot be examined"), err)
		}
	}
	if m.Moved(o.Was) {
		return nil
	}
	if err := w.stage.Move(o.Slot, d, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return conflictError(record.ChangedMeanwhile)
}

func (w *Work) rmdir(d *tree.Dir, name string, o *record.Op) error {
	now, err := d.Lstat(name)
	if err != nil {
		return tree.IgnoreMissing(err)
	}
	if now.Ino != o.Was.Ino || !now.IsDir() {
		if w.overtaken(o) {
			return nil
		}
		return conflictError(record.ChangedMeanwhile)
	}
	if err := d.Rmdir(name); err != nil {
		if names, e := namesIn(d, name); e == nil && len(names) > 0 {
			return conflictError("something is in it by now")
		}
		return tree.IgnoreMissing(err)
	}
	return nil
}

func namesIn(d *tree.Dir, name string) ([]string, error) {
	sub, err := d.Sub(name)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	return sub.Names()
}

// meta sets permissions, time and attributes. It can be repeated. made says that the
// set itself made the folder.
func (w *Work) meta(o *record.Op, made bool) (err error) {
	dir, name := tree.Split(o.Path)
	if o.Path == "." {
		dir, name = ".", "."
	}
	d, err := w.folder.Walk(dir)
	if err != nil {
		return conflictError("the folder it is in is gone, or a link")
	}
	defer d.Close()
	now, err := d.Lstat(name)
	if err != nil {
		return conflictError(record.GoneMeanwhile)
	}
	switch {
	case made && now.Ino != o.Staged,
		!made && (now.Ino != o.Was.Ino || now.Type != o.Was.Type || now.Perm != o.Was.Perm && now.Perm != o.Meta.Perm),
		!made && now.IsFile() && (now.Size != o.Was.Size || now.Mtime != o.Was.Mtime && now.Mtime != o.Meta.Mtime):
		return conflictError(record.ChangedMeanwhile)
	}
	if now.IsFile() && now.Nlink > 1 {
		return conflictError("it has another name, under which it would change as well")
	}
	var f *os.File
	if now.IsDir() {
		sub, err := d.Sub(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		f = sub.File()
	} else {
		f, err = d.Read(name)
		if errors.Is(err, fs.ErrPermission) { // the op may be about the mode
			if err = d.Chmod(name, now.Perm|0o400); err == nil {
				f, err = d.Read(name)
			}
		}
		if err != nil {
			return err
		}
		defer f.Close()
	}
	if m, err := tree.StatFile(f); err != nil || m.Ino != now.Ino {
		return conflictError(record.ChangedMeanwhile)
	}
	if _, err := tree.WriteAttrs(f, o.Attrs); err != nil {
		return err
	}
	if err := tree.SetPerm(f, o.Meta.Perm); err != nil {
		return err
	}
	if now.IsFile() || made {
		return d.SetMtime(name, o.Meta.Mtime)
	}
	return nil
}
