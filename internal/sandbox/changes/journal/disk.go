package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// Contents of a set's folder: the record, and folders of new and old content.
const (
	recordName = "set.json"
	newName    = "new"
	oldName    = "old"
	maxRecord  = 512 << 20
)

func (j *Journal) dir(id string) string { return filepath.Join(j.sets, id) }

// save writes the record to disk atomically.
func (j *Journal) save(r *record.Record) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	dir := j.dir(r.ID)
	next := filepath.Join(dir, recordName+".new")
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && r.Phase != record.Settled { // a settled set needs nothing more
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, recordName)); err != nil || r.Phase == record.Settled {
		return err
	}
	return syncDir(dir)
}

func (j *Journal) load(id string) (*record.Record, error) {
	name := filepath.Join(j.dir(id), recordName)
	if info, err := os.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return nil, fmt.Errorf("change set %q: its record is not a file of this program", id)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := record.Decode(data)
	if err != nil || r.ID != id {
		return nil, fmt.Errorf("change set %q is damaged: %w", id, errors.Join(err))
	}
	return r, nil
}

// loadHead returns a record without its ops, whose number does not matter here.
func (j *Journal) loadHead(id string) (*record.Record, error) {
	f, err := os.Open(filepath.Join(j.dir(id), recordName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := record.DecodeHead(io.LimitReader(f, maxRecord))
	if err != nil || r.ID != id {
		return nil, fmt.Errorf("change set %q is damaged: %w", id, errors.Join(err))
	}
	return r, nil
}

func syncDir(dir string) error {
	d, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// NewContent opens the content that the op puts at its path.
func (j *Journal) NewContent(r *record.Record, o *record.Op) (*os.File, error) {
	return j.content(r, newName, o)
}

// OldContent opens the file that the op replaced.
func (j *Journal) OldContent(r *record.Record, o *record.Op) (*os.File, error) {
	return j.content(r, oldName, o)
}

// content opens what the store keeps of an op.
func (j *Journal) content(r *record.Record, kind string, o *record.Op) (*os.File, error) {
	d, err := tree.Open(filepath.Join(j.dir(r.ID), kind))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	f, err := d.Read(o.Slot)
	if errors.Is(err, fs.ErrPermission) { // it has the user's file's mode
		if err := d.Chmod(o.Slot, 0o600); err != nil {
			return nil, err
		}
		return d.Read(o.Slot)
	}
	return f, err
}

// Discard marks the ops of a set that pick chooses as discarded, and drops their content.
// The error for a missing set is [fs.ErrNotExist].
func (j *Journal) Discard(ctx context.Context, id string, pick func(*record.Record) ([]*record.Op, error)) (*record.Record, error) {
	var r *record.Record
	err := j.alone(ctx, func() error {
		var err error
		if r, err = j.load(id); err != nil {
			return err
		}
		list, err := pick(r)
		if err != nil {
			return err
		}
		for _, o := range list {
			if o.State = record.Discarded; o.HasNew {
				if err := os.Remove(filepath.Join(j.dir(r.ID), newName, o.Slot)); tree.IgnoreMissing(err) != nil {
					return err
				}
				o.HasNew = false
				r.Bytes -= o.Meta.Blocks
			}
		}
		return j.save(r)
	})
	return r, err
}
