// Package journal stores change sets on disk and carries them out step by step, so that
// after a crash a set is either complete or was never begun.
//
// A set goes from [record.Staging] to [record.Settled]. Each step is on disk before the
// next one begins. The content of held changes, and the files that a set replaced, are
// stored beside its record until they expire.
//
// It does not find changes or decide what becomes of them. The caller must have the turn
// of the set's folder.
package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/apply"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/turns"
)

// Options say where a journal is and how much it keeps.
type Options struct {
	Dir      string // private; Open makes it
	Turns    *turns.Turns
	MaxBytes int64 // of held content and undo data
	MaxAge   time.Duration
	Logger   *slog.Logger
	Now      func() time.Time
}

// A Journal has the change sets of one user. Its methods are safe for concurrent use,
// even by several processes.
type Journal struct {
	sets     string // folder: one folder for each set
	open     string // folder: an empty file for each set that is not settled
	turns    *turns.Turns
	maxBytes int64
	maxAge   time.Duration
	log      *slog.Logger
	now      func() time.Time
}

// records names the lock for changing settled records. recordsWait bounds the wait
// for it, since the process that has it may be stopped.
const (
	records     = "records"
	recordsWait = 10 * time.Second
)

var errRecordsWait = fmt.Errorf("it has held the records of change sets for more than %v; if it is stopped, continue or end it", recordsWait)

// alone calls do under the lock on settled records.
func (j *Journal) alone(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recordsWait, errRecordsWait)
	defer cancel()
	return j.turns.Alone(ctx, records, true, do)
}

// Open opens the journal. All options are required.
func Open(o Options) (*Journal, error) {
	j := &Journal{
		sets: filepath.Join(o.Dir, "sets"), open: filepath.Join(o.Dir, "open"), turns: o.Turns,
		maxBytes: o.MaxBytes, maxAge: o.MaxAge, log: o.Logger, now: o.Now,
	}
	for _, dir := range []string{o.Dir, j.sets, j.open} {
		if err := tree.Private(dir); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// New returns a new set for the folder at a path.
func (j *Journal) New(run record.Run, path string, m tree.Meta) *record.Record {
	now := j.now()
	id := newID(now)
	return &record.Record{
		Set:   record.Set{ID: id, Run: run, Folder: path, Made: now, Expires: now.Add(j.maxAge)},
		Stage: apply.StagePrefix + id, Dev: m.Dev, Ino: m.Ino,
	}
}

// newID returns a name for a set; names sort by time.
func newID(now time.Time) string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return now.UTC().Format("20060102-150405.000000") + "-" + hex.EncodeToString(b[:])
}

// Unfinished returns the sets that are not yet settled.
func (j *Journal) Unfinished() []*record.Record {
	var list []*record.Record
	entries, _ := os.ReadDir(j.open) // a later start finishes what cannot be read now
	for _, e := range entries {
		r, err := j.load(e.Name())
		switch {
		case err == nil && r.Phase == record.Settled, errors.Is(err, fs.ErrNotExist):
			_ = os.Remove(filepath.Join(j.open, e.Name()))
		case err != nil:
			j.log.Warn("a change set cannot be read", "set", e.Name(), "err", err)
		default:
			list = append(list, r)
		}
	}
	return list
}

// Recover finishes the unfinished sets of the folder at a path, and drops those that were
// not committed. The caller must have the folder's turn, and have listed the sets after
// it got the turn.
func (j *Journal) Recover(unfinished []*record.Record, path string, folder *tree.Dir, m tree.Meta) (err error) {
	for _, r := range unfinished {
		if r.Folder != path || r.Dev != m.Dev || r.Ino != m.Ino {
			continue
		}
		if r.Phase == record.Staging {
			err = j.drop(folder, r)
		} else {
			err = j.Finish(folder, r)
		}
		if err != nil {
			return fmt.Errorf("finishing change set %s: %w", r.ID, err)
		}
		_ = tree.IgnoreMissing(os.Remove(filepath.Join(j.open, r.ID)))
		j.log.Info("finished a change set that another server left", "set", r.ID, "dir", r.Folder, "phase", string(r.Phase))
	}
	return nil
}

// Forget drops an unfinished set whose folder was not available for as long as sets are
// kept. The folder is presumed gone for good.
func (j *Journal) Forget(r *record.Record) {
	if j.now().After(r.Expires.Add(j.maxAge)) {
		_ = os.RemoveAll(j.dir(r.ID))
	}
}

// Records returns all settled sets that can be read, newest first.
func (j *Journal) Records() []*record.Record { return j.read(j.load) }

// heads returns them without their ops, so that a large set does not slow down each
// later call.
func (j *Journal) heads() []*record.Record { return j.read(j.loadHead) }

// Find returns the settled set with the ID or, if there is none, all sets whose IDs begin
// with it.
func (j *Journal) Find(id string) []*record.Record {
	var list []*record.Record
	entries, _ := os.ReadDir(j.sets)
	for _, e := range entries {
		if id == "" || !strings.HasPrefix(e.Name(), id) {
			continue
		}
		r, err := j.load(e.Name())
		switch {
		case err != nil || r.Phase != record.Settled:
		case r.ID == id:
			return []*record.Record{r}
		default:
			list = append(list, r)
		}
	}
	return list
}

func (j *Journal) read(load func(id string) (*record.Record, error)) []*record.Record {
	var list []*record.Record
	entries, _ := os.ReadDir(j.sets)
	for _, e := range slices.Backward(entries) {
		if r, err := load(e.Name()); err == nil {
			if r.Phase == record.Settled {
				list = append(list, r)
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			j.log.Warn("a change set cannot be read", "set", e.Name(), "err", err)
		}
	}
	return list
}

// used returns how many bytes all settled sets keep.
func (j *Journal) used() (n int64) {
	for _, r := range j.heads() {
		n += r.Bytes
	}
	return n
}

// Expire removes old sets: the content first, the set later. If another process is
// changing records, it leaves that to a later call.
func (j *Journal) Expire() {
	now := j.now()
	_ = j.turns.Alone(context.Background(), records, false, func() error {
		for _, r := range j.heads() {
			switch {
			case now.After(r.Expires.Add(j.maxAge)):
				_ = os.RemoveAll(j.dir(r.ID))
			case now.After(r.Expires) && !r.Expired:
				r, err := j.load(r.ID)
				if err != nil {
					continue // the list reports it
				}
				r.Expired = true
				r.UndoLost = "it has expired"
				_ = j.empty(r, newName, oldName)
			}
		}
		return nil
	})
	// A program that was killed before it recorded a set as open had staged none of it.
	entries, _ := os.ReadDir(j.sets)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) <= j.maxAge {
			continue
		}
		if _, err := os.Lstat(filepath.Join(j.open, e.Name())); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if r, err := j.load(e.Name()); errors.Is(err, fs.ErrNotExist) || err == nil && r.Phase == record.Staging {
			_ = os.RemoveAll(j.dir(e.Name()))
		}
	}
}

// empty removes content of a set and saves it.
func (j *Journal) empty(r *record.Record, kinds ...string) error {
	for _, kind := range kinds {
		if err := os.RemoveAll(filepath.Join(j.dir(r.ID), kind)); err != nil {
			return err
		}
		for i := range r.Ops {
			if o := &r.Ops[i]; kind == newName {
				o.HasNew = false
			} else {
				o.HasOld = false
			}
		}
	}
	r.Bytes = newBytes(r)
	return j.save(r)
}

// makeRoom drops the oldest sets' undo data to make room for the content that r
// holds, and for what a run's set replaces or removes. Changes that could not be
// undone are held, and held content that still does not fit is refused. A person's
// own set may go without undo data.
func (j *Journal) makeRoom(ctx context.Context, r *record.Record) error {
	run := r.From == "" && r.Undoes == ""
	need := heldBytes(r)
	if run {
		need += undoBytes(r)
	}
	if need == 0 {
		return nil
	}
	used := j.used()
	if used+need > j.maxBytes {
		alone := j.alone
		if run { // its changes would be lost, so only the caller's context ends the wait
			alone = func(ctx context.Context, do func() error) error { return j.turns.Alone(ctx, records, true, do) }
		}
		err := alone(ctx, func() error {
			all := j.Records()
			kept := used
			for _, old := range all {
				kept -= old.Bytes - newBytes(old)
			}
			if run && undoBytes(r) > 0 && kept+need > j.maxBytes {
				j.hold(r)
				need = heldBytes(r)
			}
			for _, old := range slices.Backward(all) {
				if used+need <= j.maxBytes {
					break
				}
				if !slices.ContainsFunc(old.Ops, func(o record.Op) bool { return o.HasOld }) {
					continue
				}
				before := old.Bytes
				old.UndoLost = "what was there before made room for newer changes, of " + r.ID
				if err := j.empty(old, oldName); err != nil {
					return err
				}
				used -= before - old.Bytes
				r.MadeRoom = append(r.MadeRoom, old.ID)
				j.log.Warn("a change set cannot be undone any more: what was there before made room for a newer one",
					"set", old.ID, "dir", old.Folder, "newer", r.ID, "run", r.Run.ID)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	waits := j.waits(r)
	for i := range r.Ops {
		o := &r.Ops[i]
		if o.State != record.Held || !o.Regular() {
			continue
		}
		why := ""
		switch {
		case waits+o.Meta.Blocks > j.share():
			why = fmt.Sprintf("; and it is not kept: what waits of one pack may take at most half of limits.held (%d MiB)", j.share()>>20)
		case used+o.Meta.Blocks > j.maxBytes:
			why = "; and there is no room to keep it until you have seen it"
		default:
			waits, used = waits+o.Meta.Blocks, used+o.Meta.Blocks
			continue
		}
		o.State, o.Why, o.Reason = record.Refused, record.WhyRoom, o.Reason+why
	}
	return nil
}

// share returns how much of the store one pack's held content may take. With all of
// it, one run could keep every later run from replacing files.
func (j *Journal) share() int64 { return j.maxBytes / 2 }

// waits returns about how many bytes of held content the other sets of r's pack have.
// It reads whole sets only until it knows whether they exceed the share.
func (j *Journal) waits(r *record.Record) (n int64) {
	var own []*record.Record
	for _, head := range j.heads() {
		if head.Run.Pack == r.Run.Pack {
			own = append(own, head)
			n += head.Bytes // includes undo data, which can be dropped
		}
	}
	for _, head := range own {
		if n+heldBytes(r) <= j.share() {
			break
		}
		if whole, err := j.load(head.ID); err == nil {
			n -= head.Bytes - newBytes(whole)
		}
	}
	return n
}

// hold holds all of a run's set if a part could not be undone: half of it would be
// neither the old state nor the run's.
func (j *Journal) hold(r *record.Record) {
	reason := fmt.Sprintf("it could not be undone: what the run replaces and removes takes %d MiB, for which limits.held (%d MiB) has no room beside what waits", undoBytes(r)>>20, j.maxBytes>>20)
	for i := range r.Ops {
		if o := &r.Ops[i]; o.State == record.Applied {
			o.State, o.Why, o.Reason = record.Held, record.WhyRoom, reason
		}
	}
}

// heldBytes returns the size of the set's held content.
func heldBytes(r *record.Record) (n int64) {
	for i := range r.Ops {
		if o := &r.Ops[i]; o.State == record.Held && o.Regular() {
			n += o.Meta.Blocks
		}
	}
	return n
}

// undoBytes returns the size of the content that must be kept to undo the set.
func undoBytes(r *record.Record) (n int64) {
	for i := range r.Ops {
		if o := &r.Ops[i]; o.Replaces() {
			n += o.Was.Blocks
		}
	}
	return n
}

// newBytes returns the size of what a set keeps besides undo data.
func newBytes(r *record.Record) (n int64) {
	for i := range r.Ops {
		if o := &r.Ops[i]; o.HasNew {
			n += o.Meta.Blocks
		}
	}
	return n
}

// tell records the states of the changes in the set that r applied or undid.
func (j *Journal) tell(r *record.Record) error {
	id, state := r.From, record.Applied
	if r.Undoes != "" {
		id, state = r.Undoes, record.Undone
	}
	if id == "" {
		return nil
	}
	// The set counts already, so no context may end this earlier.
	return j.alone(context.Background(), func() error {
		of, err := j.load(id)
		if err != nil {
			return tree.IgnoreMissing(err)
		}
		at := map[string][]*record.Op{}
		for i := range of.Ops {
			if o := &of.Ops[i]; o.By == "" && (o.State == record.Held || o.State == record.Applied) {
				at[o.Path] = append(at[o.Path], o)
			}
		}
		for i := range r.Ops {
			if o := &r.Ops[i]; o.State == record.Applied {
				for _, was := range at[o.Path] {
					was.State, was.By, was.Why, was.Reason = state, r.ID, "", ""
				}
			}
		}
		return j.save(of)
	})
}
