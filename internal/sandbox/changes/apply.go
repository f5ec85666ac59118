package changes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// stageBegin is what the name of a stage begins with: the folder beside the
// user's files where content waits to be given its name. It is there for as
// long as a set is carried out.
const stageBegin = ".packs-mcp-apply-"

// workers is how many files are staged at a time. The file system can then make
// several durable at once.
const workers = 8

// carryOut stages, commits and carries out a set whose ops say what becomes of
// them, and keeps what is held. On an error nothing was applied, and nothing is
// kept.
//
// The folder's turn is held by the caller.
func (s *Store) carryOut(ctx context.Context, f *folder, r *record) (*Set, error) {
	if err := os.Mkdir(s.dir(r.ID), 0o700); err != nil {
		return nil, err
	}
	r.Phase = staging
	err := s.save(r.begun())
	if err == nil {
		err = os.WriteFile(filepath.Join(s.open, r.ID), nil, 0o600)
	}
	if err == nil {
		err = errors.Join(syncDir(s.sets), syncDir(s.open))
	}
	if err == nil {
		err = s.stage(ctx, f, r)
	}
	if err == nil {
		r.Phase = committed
		err = s.save(r)
	}
	if err != nil {
		return nil, errors.Join(err, s.drop(f, r))
	}
	// The set counts from here on, whatever becomes of ctx.
	if err := s.finishSet(f, r); err != nil {
		return r.list(), err
	}
	return r.list(), nil
}

// begun is the record before anything is staged.
func (r *record) begun() *record {
	b := *r
	b.Ops = nil
	return &b
}

// finishSet carries out a committed set, or goes on where that ended.
func (s *Store) finishSet(f *folder, r *record) error {
	stage, err := f.dir.Walk(r.Stage)
	if errors.Is(err, fs.ErrNotExist) {
		stage, err = nil, nil // nothing was to be staged, or all is done
	}
	if err != nil {
		return err
	}
	if stage != nil {
		defer stage.Close()
	}
	if r.Phase == committed {
		x := &execution{store: s, folder: f, stage: stage, record: r, touched: map[string]bool{}}
		x.run()
		r.Phase = decided
		if err := s.save(r); err != nil {
			return err
		}
	}
	if err := s.collect(f, stage, r); err != nil {
		return err
	}
	r.Phase = settled
	if err := s.save(r); err != nil {
		return err
	}
	return os.Remove(filepath.Join(s.open, r.ID))
}

// drop removes what a set that does not count left.
func (s *Store) drop(f *folder, r *record) error {
	if err := s.clearStage(f, r); err != nil {
		return err // the next start tries again
	}
	return errors.Join(os.RemoveAll(s.dir(r.ID)), ignoreMissing(os.Remove(filepath.Join(s.open, r.ID))))
}

// clearStage removes the stage and git's locks.
func (s *Store) clearStage(f *folder, r *record) error {
	var errs []error
	if r.Stage != "" && strings.HasPrefix(r.Stage, stageBegin) {
		if stage, err := f.dir.Sub(r.Stage); err == nil {
			names, err := stage.Names()
			errs = append(errs, err)
			for _, name := range names {
				if stage.Remove(name) != nil {
					errs = append(errs, stage.Rmdir(name))
				}
			}
			errs = append(errs, stage.Close(), f.dir.Rmdir(r.Stage))
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, at := range r.Locks {
		errs = append(errs, f.unlock(at, r.ID))
	}
	return errors.Join(errs...)
}

// unlock removes a lock file of git's if it is the set's.
func (f *folder) unlock(at, id string) error {
	dir, name := split(at)
	d, err := f.dir.Walk(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	defer d.Close()
	file, err := d.Read(name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer file.Close()
	text := make([]byte, 256)
	if n, _ := file.ReadAt(text, 0); string(text[:n]) != lockText(id) {
		return nil
	}
	return d.Remove(name)
}

func lockText(id string) string { return "packs-mcp " + id + "\n" }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stage puts everything that the ops need on disk: content to be applied beside
// the folder's files, and content that is held in the store.
func (s *Store) stage(ctx context.Context, f *folder, r *record) error {
	keep := filepath.Join(s.dir(r.ID), newName)
	if err := os.Mkdir(keep, 0o700); err != nil {
		return err
	}
	kept, err := tree.Open(keep)
	if err != nil {
		return err
	}
	defer kept.Close()
	var stage *tree.Dir
	if slices.ContainsFunc(r.Ops, func(o op) bool { return o.State == Applied && (o.makes() || o.Was != nil) }) {
		if err := f.dir.Mkdir(r.Stage); err != nil {
			return err
		}
		if stage, err = f.dir.Sub(r.Stage); err != nil {
			return err
		}
		defer stage.Close()
	}
	if err := f.takeLocks(r, stage); err != nil {
		return err
	}
	if err := s.makeRoom(r); err != nil {
		return err
	}
	if err := parallel(len(r.Ops), func(i int) error {
		o := &r.Ops[i]
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var err error
		switch {
		case o.State == Applied:
			if err = o.stage(stage); err == nil && o.isIndex() && o.regular() {
				if err = o.copyTo(kept, nil); err == nil {
					o.HasNew = true
				}
			}
		case o.State == Held && o.regular() && !o.HasNew:
			if err = o.copyTo(kept, nil); err == nil {
				o.HasNew = true
			}
		}
		if err != nil {
			return fmt.Errorf("staging %q: %w", o.Path, err)
		}
		return nil
	}); err != nil {
		return err
	}
	for i := range r.Ops {
		if r.Ops[i].HasNew {
			r.Bytes += r.Ops[i].Meta.Blocks
		}
	}
	if stage != nil {
		if err := errors.Join(stage.Sync(), f.dir.Sync()); err != nil {
			return err
		}
	}
	return kept.Sync()
}

// parallel calls do for 0 to n-1, some at a time, and returns the first error.
// It waits for all that were begun.
func parallel(n int, do func(i int) error) error {
	var mu sync.Mutex
	var next int
	var first error // guarded by mu, as next is
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := first != nil || i >= n
				mu.Unlock()
				if stop {
					return
				}
				if err := do(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return first
}

// stage makes what the op is to give a name to, and notes its inode.
func (o *op) stage(stage *tree.Dir) error {
	var err error
	switch {
	case o.regular():
		err = o.copyTo(stage, o.Was)
	case o.Kind == KindSymlink:
		if err = stage.Symlink(o.Link, o.Slot); err == nil {
			err = stage.SetMtime(o.Slot, o.Meta.Mtime)
		}
	case o.Kind == KindMkdir:
		err = stage.Mkdir(o.Slot)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	m, err := stage.Lstat(o.Slot)
	o.Staged = m.Ino
	return err
}

// copyTo writes the op's content to a new file called by its slot, with what
// belongs to it, and waits for the disk. keep is not nil for a file that is to
// take the place of another, whose owner it keeps.
func (o *op) copyTo(to *tree.Dir, keep *tree.Meta) (err error) {
	out, err := to.Create(o.Slot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if o.open == nil {
		_, err = out.Write(o.data)
	} else {
		err = o.copyContent(out)
	}
	if err != nil {
		return err
	}
	if keep != nil {
		tree.KeepOwner(out, keep)
	}
	lost, err := tree.WriteAttrs(out, o.Attrs)
	if lost && o.Note == "" {
		o.Note = "some of its attributes could not be kept here"
	}
	if err == nil {
		err = tree.SetPerm(out, o.Meta.Perm)
	}
	if err == nil {
		err = to.SetMtime(o.Slot, o.Meta.Mtime)
	}
	if err == nil {
		err = out.Sync()
	}
	return err
}

func (o *op) copyContent(out *os.File) error {
	in, err := o.open()
	if err != nil {
		return err
	}
	defer in.Close()
	digest, err := tree.CopyContent(out, in, o.Meta.Size)
	if err == nil && o.Kind != KindGit && digest != o.New {
		err = errors.New("its content changed after it was read")
	}
	return err
}

// An execution carries out the ops of a committed set. It may be one that ended
// in the middle: what an op did shows in the stage. There, the slot of what is
// made holds it until it has its name, and afterwards what had that name
// before; the slot of what is removed holds nothing, and afterwards that.
type execution struct {
	store   *Store
	folder  *folder
	stage   *tree.Dir // nil: nothing was staged
	record  *record
	touched map[string]bool // folders whose names changed
}

func (x *execution) run() {
	x.group()
	for i := range x.record.Ops {
		if o := &x.record.Ops[i]; !o.Git && o.State == Applied {
			x.result(o, x.do(o))
		}
	}
	for _, o := range slices.Backward(x.record.Ops) {
		// What is put into a folder changes its time, and may need a mode that it is
		// not to keep.
		if o.State == Applied && o.Kind == KindMkdir {
			_ = x.meta(&o, true)
		}
	}
	for i := range x.record.Ops {
		if o := &x.record.Ops[i]; o.State == Applied {
			x.now(o)
		}
	}
	for dir := range x.touched {
		if d, err := x.folder.dir.Walk(dir); err == nil {
			_ = d.Sync() // what it is needed for is that the order on disk is that of the ops
			_ = d.Close()
		}
	}
}

// A conflictError says that the user's folder is not as it was expected.
type conflictError string

func (e conflictError) Error() string { return string(e) }

// result notes what became of an op.
func (x *execution) result(o *op, err error) {
	if err == nil {
		dir, _ := split(o.Path)
		x.touched[dir] = true
		return
	}
	o.State, o.Why, o.Reason, o.Note = Held, WhyFailed, "it could not be applied: "+reason(err), ""
	if c, ok := errors.AsType[conflictError](err); ok {
		o.Why, o.Reason = WhyConflict, string(c)
	}
	if x.record.From != "" { // it stays held in the set that it is from
		o.State = Refused
	}
}

// reason is the system's own word, without names in the stage.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Op + ": " + pe.Err.Error()
	}
	return err.Error()
}

// now notes what the path has after the op, so that undoing it can tell whether
// it is still that.
func (x *execution) now(o *op) {
	dir, name := split(o.Path)
	d, err := x.folder.dir.Walk(dir)
	if err != nil {
		return
	}
	defer d.Close()
	m, err := d.Lstat(name)
	if err != nil {
		return
	}
	mine := m.Ino == o.Staged && (m.IsDir() || m.Size == o.Meta.Size || o.Kind == KindGit)
	if o.Kind == KindMeta {
		mine = o.Was != nil && m.Ino == o.Was.Ino && m.Size == o.Was.Size
	}
	if o.makes() && mine || o.Kind == KindMeta && mine {
		o.Now = &m
	}
}

// do carries out one op, unless that was done before.
func (x *execution) do(o *op) error {
	dir, name := split(o.Path)
	d, err := x.folder.dir.Walk(dir)
	if err != nil {
		if o.Kind == KindRemove || o.Kind == KindRmdir {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		return conflictError("the folder it is in is gone, or a link")
	}
	defer d.Close()
	switch {
	case o.Kind == KindRmdir:
		return x.rmdir(d, name, o)
	case o.Kind == KindRemove:
		return x.remove(d, name, o)
	case o.Kind == KindMeta:
		return x.meta(o, false)
	case o.Was == nil:
		return x.create(d, name, o)
	}
	return x.replace(d, name, o)
}

// staged returns what lies in the op's slot; nil: nothing.
func (x *execution) staged(slot string) (*tree.Meta, error) {
	if x.stage == nil {
		return nil, nil
	}
	m, err := x.stage.Lstat(slot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &m, err
}

func (x *execution) create(d *tree.Dir, name string, o *op) error {
	m, err := x.staged(o.Slot)
	if err != nil || m == nil {
		return err // it has its name already
	}
	if o.Git {
		// An object is named by its content, and a folder of git's is for all: one that
		// is there already is the same.
		if there, err := d.Lstat(name); err == nil && o.Internal && there.Type == o.Meta.Type {
			return nil
		}
	}
	if err := x.stage.Inherit(o.Slot, d); err != nil {
		return err
	}
	err = x.stage.Move(o.Slot, d, name)
	if errors.Is(err, fs.ErrExist) {
		return conflictError("something has its name by now")
	}
	return err
}

// replace exchanges the new content with the old, and looks at what it got: if
// that is not what was there when the run ended, it is put back.
func (x *execution) replace(d *tree.Dir, name string, o *op) error {
	m, err := x.staged(o.Slot)
	if err != nil || m == nil {
		return err
	}
	if m.Ino == o.Staged && m.Type == o.Meta.Type && !x.moved(o) {
		now, err := d.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return conflictError(goneMeanwhile)
		case err != nil:
			return err
		case !now.Same(o.Was):
			return conflictError(changedMeanwhile)
		}
		err = x.stage.Swap(o.Slot, d, name)
		if errors.Is(err, tree.ErrNoSwap) {
			return x.replaceInSteps(d, name, o)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return conflictError(goneMeanwhile)
		}
		if err != nil {
			return err
		}
		if m, err = x.staged(o.Slot); err != nil || m == nil {
			return errors.Join(errors.New("what was there before cannot be looked at"), err)
		}
	} else if x.moved(o) {
		return x.replaceInSteps(d, name, o)
	}
	if m.Moved(o.Was) {
		return nil
	}
	return x.putBack(d, name, o)
}

// putBack gives the user's own file its name again. What the user gave the name
// to in the meantime is newer, and stays.
func (x *execution) putBack(d *tree.Dir, name string, o *op) error {
	now, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := x.stage.Move(o.Slot, d, name); err != nil {
			return err
		}
	case err != nil:
		return err
	case now.Ino == o.Staged:
		if err := x.stage.Swap(o.Slot, d, name); err != nil {
			return err
		}
		if m, err := x.staged(o.Slot); err == nil && m != nil && m.Ino != o.Staged {
			if err := x.stage.Swap(o.Slot, d, name); err != nil { // newer still
				return err
			}
		}
	}
	return conflictError(changedMeanwhile)
}

// aside is the slot of what a name had before, where two names cannot be
// exchanged.
func aside(o *op) string { return o.Slot + ".old" }

// moved reports whether replaceInSteps took its first step.
func (x *execution) moved(o *op) bool {
	m, err := x.staged(aside(o))
	return err != nil || m != nil
}

// replaceInSteps takes the old content away and then gives the new one its
// name. In between there is nothing with that name.
func (x *execution) replaceInSteps(d *tree.Dir, name string, o *op) error {
	if !x.moved(o) {
		if err := d.Move(name, x.stage, aside(o)); err != nil {
			return err
		}
	}
	old, err := x.staged(aside(o))
	if err != nil || old == nil {
		return errors.Join(errors.New("what was there before cannot be looked at"), err)
	}
	m, err := x.staged(o.Slot)
	if err != nil || m == nil {
		return err
	}
	why := changedMeanwhile
	if old.Moved(o.Was) {
		err := x.stage.Move(o.Slot, d, name)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		why = "something has its name by now"
	}
	if err := x.stage.Move(aside(o), d, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return conflictError(why)
}

// remove takes a name away, and looks at what it got.
func (x *execution) remove(d *tree.Dir, name string, o *op) error {
	m, err := x.staged(o.Slot)
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
			return conflictError(changedMeanwhile)
		}
		if err := d.Move(name, x.stage, o.Slot); err != nil {
			return ignoreMissing(err)
		}
		if m, err = x.staged(o.Slot); err != nil || m == nil {
			return errors.Join(errors.New("what was removed cannot be looked at"), err)
		}
	}
	if m.Moved(o.Was) {
		return nil
	}
	if err := x.stage.Move(o.Slot, d, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return conflictError(changedMeanwhile)
}

func (x *execution) rmdir(d *tree.Dir, name string, o *op) error {
	now, err := d.Lstat(name)
	if err != nil {
		return ignoreMissing(err)
	}
	if now.Ino != o.Was.Ino || !now.IsDir() {
		return conflictError(changedMeanwhile)
	}
	if err := d.Rmdir(name); err != nil {
		if names, e := namesIn(d, name); e == nil && len(names) > 0 {
			return conflictError("something is in it by now")
		}
		return ignoreMissing(err)
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

// meta sets permissions, time and attributes. It can be repeated. made is set
// for a folder that the set itself made.
func (x *execution) meta(o *op, made bool) (err error) {
	dir, name := split(o.Path)
	if o.Path == "." {
		dir, name = ".", "."
	}
	d, err := x.folder.dir.Walk(dir)
	if err != nil {
		return conflictError("the folder it is in is gone, or a link")
	}
	defer d.Close()
	now, err := d.Lstat(name)
	if err != nil {
		return conflictError(goneMeanwhile)
	}
	switch {
	case made && now.Ino != o.Staged,
		!made && (now.Ino != o.Was.Ino || now.Type != o.Was.Type || now.Perm != o.Was.Perm && now.Perm != o.Meta.Perm),
		!made && now.IsFile() && (now.Size != o.Was.Size || now.Mtime != o.Was.Mtime && now.Mtime != o.Meta.Mtime):
		return conflictError(changedMeanwhile)
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
		if errors.Is(err, fs.ErrPermission) { // the mode may be what the op is about
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
		return conflictError(changedMeanwhile)
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

// collect moves what is left in the stage to the store: old content, so that
// the set can be undone, and new content that is held after all. It can be
// repeated.
func (s *Store) collect(f *folder, stage *tree.Dir, r *record) error {
	used := s.used()
	for i := range r.Ops {
		o := &r.Ops[i]
		switch {
		case o.State == Held && o.regular():
			if s.has(r, newName, o) {
				o.HasNew = true
			} else if stage == nil {
				break
			} else if m, err := stage.Lstat(o.Slot); err == nil && m.Ino == o.Staged && m.IsFile() {
				if err := s.keep(stage, o.Slot, &m, r, newName, o.Slot); err != nil {
					return err
				}
				o.HasNew = true
			}
		case o.State == Applied && o.Was != nil && o.Was.IsFile() && o.Kind != KindMeta:
			if s.has(r, oldName, o) {
				o.HasOld = true
				break
			}
			if stage == nil {
				break
			}
			from := o.Slot
			if _, err := stage.Lstat(aside(o)); err == nil {
				from = aside(o)
			}
			m, err := stage.Lstat(from)
			if err != nil || !m.IsFile() {
				break
			}
			if used+r.Bytes+m.Blocks > s.maxBytes {
				r.UndoLost = "there is no room for what was there before"
			} else if err := s.keep(stage, from, &m, r, oldName, o.Slot); err != nil {
				r.UndoLost = "what was there before could not be kept: " + reason(err)
			} else {
				o.HasOld = true
			}
		}
	}
	if err := s.clearStage(f, r); err != nil {
		return err
	}
	return s.tell(r)
}

// has reports whether the content was moved to the store before a program was
// killed that did not come to note it, and counts it.
func (s *Store) has(r *record, kind string, o *op) bool {
	if kind == newName && o.HasNew {
		return true
	}
	info, err := os.Lstat(filepath.Join(s.dir(r.ID), kind, o.Slot))
	if err != nil {
		return false
	}
	r.Bytes += info.Size()
	return true
}

// keep moves a file from the stage into one of the set's folders.
func (s *Store) keep(stage *tree.Dir, from string, m *tree.Meta, r *record, kind, slot string) error {
	dir := filepath.Join(s.dir(r.ID), kind)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	r.Bytes += m.Blocks
	if m.Nlink == 1 { // what has another name could still be changed through that
		err := stage.Move(from, to, slot)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	in, err := stage.Read(from)
	if errors.Is(err, fs.ErrPermission) {
		if err = stage.Chmod(from, m.Perm|0o400); err == nil {
			in, err = stage.Read(from)
		}
	}
	if err != nil {
		return err
	}
	defer in.Close()
	next := slot + ".new"
	_ = to.Remove(next)
	out, err := to.Create(next)
	if err != nil {
		return err
	}
	_, err = tree.CopyContent(out, in, m.Size)
	if err == nil && kind == newName {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = to.Move(next, to, slot)
	}
	if errors.Is(err, fs.ErrExist) { // it was copied before the program was killed
		err = to.Remove(next)
	}
	if err != nil {
		_ = to.Remove(next)
	}
	return err
}
