// Package apply carries out the ops of a change set in an open folder, in such a way that
// if the process is killed, another one can continue.
//
// Content is staged beside the user's files first, and then renamed to its place. An op
// never replaces a file that it does not expect: the op becomes held, and the user's file
// stays. Replaced files stay in the stage until the caller stores them.
//
// It does not decide what is applied (see package layer), and does not store a set's
// progress (see package journal).
package apply

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// StagePrefix begins the name of a stage: the folder beside the user's files where
// content waits to be renamed to its place. It exists only while a set is carried out.
const StagePrefix = ".packs-mcp-apply-"

// A Work is a set that is being applied to a folder.
type Work struct {
	folder  *tree.Dir
	stage   *tree.Dir // nil: nothing was staged
	record  *record.Record
	touched map[string]bool       // folders whose names changed
	makes   map[string]*record.Op // :: path → the op that makes something new there; nil: not computed yet
}

// Prepare makes the stage if the set needs one, and takes git's locks. If git is running,
// it holds the ops on git's data. The Work owns neither folder nor r.
func Prepare(folder *tree.Dir, r *record.Record) (*Work, error) {
	w := &Work{folder: folder, record: r, touched: map[string]bool{}}
	if slices.ContainsFunc(r.Ops, func(o record.Op) bool { return o.State == record.Applied && (o.Makes() || o.Was != nil) }) {
		if err := folder.Mkdir(r.Stage); err != nil {
			return nil, err
		}
		var err error
		if w.stage, err = folder.Sub(r.Stage); err != nil {
			return nil, err
		}
	}
	if err := w.takeLocks(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Resume returns the work on a set that was staged. A missing stage means that there
// was nothing to stage, or that everything is done.
func Resume(folder *tree.Dir, r *record.Record) (*Work, error) {
	stage, err := folder.Walk(r.Stage)
	if errors.Is(err, fs.ErrNotExist) {
		stage, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Work{folder: folder, stage: stage, record: r, touched: map[string]bool{}}, nil
}

// Close closes the stage without removing it.
func (w *Work) Close() error {
	if w.stage == nil {
		return nil
	}
	return w.stage.Close()
}

// Clear removes the stage and git's locks.
func Clear(folder *tree.Dir, r *record.Record) error {
	var errs []error
	if r.Stage != "" && strings.HasPrefix(r.Stage, StagePrefix) {
		if stage, err := folder.Sub(r.Stage); err == nil {
			names, err := stage.Names()
			errs = append(errs, err)
			for _, name := range names {
				if stage.Remove(name) != nil {
					errs = append(errs, stage.Rmdir(name))
				}
			}
			errs = append(errs, stage.Close(), folder.Rmdir(r.Stage))
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, at := range r.Locks {
		errs = append(errs, unlock(folder, at, r.ID))
	}
	return errors.Join(errs...)
}

// unlock removes a lock file of git's if it is the set's.
func unlock(folder *tree.Dir, at, id string) error {
	dir, name := tree.Split(at)
	d, err := folder.Walk(dir)
	if err != nil {
		return tree.IgnoreMissing(err)
	}
	defer d.Close()
	file, err := d.Read(name)
	if err != nil {
		return tree.IgnoreMissing(err)
	}
	defer file.Close()
	text := make([]byte, 256)
	if n, _ := file.ReadAt(text, 0); string(text[:n]) != lockText(id) {
		return nil
	}
	return d.Remove(name)
}

func lockText(id string) string { return "packs-mcp " + id + "\n" }
