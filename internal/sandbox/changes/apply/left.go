package apply

import (
	"errors"
	"io/fs"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// New returns the name in the stage of the content that an op did not put in place.
func (w *Work) New(o *record.Op) (name string, m tree.Meta, ok bool) {
	if w.stage == nil {
		return "", tree.Meta{}, false
	}
	m, err := w.stage.Lstat(o.Slot)
	return o.Slot, m, err == nil && m.Ino == o.Staged && m.IsFile()
}

// Old returns the name in the stage of the file that an op replaced.
func (w *Work) Old(o *record.Op) (name string, m tree.Meta, ok bool) {
	if w.stage == nil {
		return "", tree.Meta{}, false
	}
	name = o.Slot
	if _, err := w.stage.Lstat(aside(o)); err == nil {
		name = aside(o)
	}
	m, err := w.stage.Lstat(name)
	return name, m, err == nil && m.IsFile()
}

// Keep moves a file from the stage into another folder, as slot. If it has to copy the
// content, durable makes it wait for the disk. It can be repeated.
func (w *Work) Keep(name string, m *tree.Meta, to *tree.Dir, slot string, durable bool) error {
	if m.Nlink == 1 { // a file with another name could still be changed through that
		err := w.stage.Move(name, to, slot)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	in, err := w.stage.Read(name)
	if errors.Is(err, fs.ErrPermission) {
		if err = w.stage.Chmod(name, m.Perm|0o400); err == nil {
			in, err = w.stage.Read(name)
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
	if err == nil && durable {
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
