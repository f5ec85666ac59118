package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// workers is how many files are staged at a time, so that the file system can sync
// several at once.
const workers = 8

// Stage writes the content of all ops to disk: that of applied ops to the stage, and that
// of held ops to the folder kept.
func (w *Work) Stage(ctx context.Context, kept *tree.Dir) error {
	if err := parallel(len(w.record.Ops), func(i int) error {
		o := &w.record.Ops[i]
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		var err error
		switch {
		case o.State == record.Applied:
			if err = stageOp(o, w.stage); err == nil && o.IsIndex() && o.Regular() {
				if err = copyTo(o, kept, nil); err == nil {
					o.HasNew = true
				}
			}
		case o.State == record.Held && o.Regular() && !o.HasNew:
			if err = copyTo(o, kept, nil); err == nil {
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
	if w.stage != nil {
		if err := errors.Join(w.stage.Sync(), w.folder.Sync()); err != nil {
			return err
		}
	}
	return kept.Sync()
}

// parallel calls do for 0 to n-1, several at a time, and returns the first error. It
// waits for all calls that began.
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

// stageOp makes the op's new file in the stage, and records its inode.
func stageOp(o *record.Op, stage *tree.Dir) error {
	var err error
	switch {
	case o.Regular():
		err = copyTo(o, stage, o.Was)
	case o.Kind == record.KindSymlink:
		if err = stage.Symlink(o.Link, o.Slot); err == nil {
			err = stage.SetMtime(o.Slot, o.Meta.Mtime)
		}
	case o.Kind == record.KindMkdir:
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

// copyTo writes the op's content and metadata to a new file named by its slot, and
// syncs it. If the file will replace another, keep describes that one, whose owner it
// gets.
func copyTo(o *record.Op, to *tree.Dir, keep *tree.Meta) (err error) {
	out, err := to.Create(o.Slot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if o.Open == nil {
		_, err = out.Write(o.Data)
	} else {
		err = copyContent(o, out)
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

func copyContent(o *record.Op, out *os.File) error {
	in, err := o.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	digest, err := tree.CopyContent(out, in, o.Meta.Size)
	if err == nil && o.Kind != record.KindGit && digest != o.New {
		err = errors.New("its content changed after it was read")
	}
	return err
}
