package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// A step is one change of one pack. The steps of a change are recorded together before
// the first begins. If the change is interrupted, the next process finishes it.
type step struct {
	ID     string      `json:"id"`
	Before *lock.Entry `json:"before,omitempty"` // the lock file's entry before; nil: none
	Entry  *lock.Entry `json:"entry,omitempty"`  // the entry afterwards; nil: none
	Staged string      `json:"staged,omitempty"` // the folder that is put in the pack's place

	// fresh says that this process wrote the folder, and hashed each file as it did. What
	// the user changes there until it gets its place is found by verify.
	fresh bool
}

const stepFile = inner + "/step.json"

func (t *Tx) run(steps []step) error {
	for i, st := range steps {
		if e, ok := t.l.Packs[st.ID]; ok {
			steps[i].Before = &e
		}
	}
	data, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	if err := t.reserve(len(data), len(steps)); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := writeIn(t.root, stepFile, data); err != nil {
		return fmt.Errorf("writing down what comes next: %w", err)
	}
	return t.finish(steps)
}

// reserve fails if the disks lack room for what a number of steps write: themselves, in
// size bytes, as much again for the entries of the previous versions, folders, the
// notes beside the packs, and the lock file. A change that begins without room could be
// finished only by the next process.
func (t *Tx) reserve(size, steps int) error {
	const (
		folders = 32 << 10
		further = 12 << 10 // of each further step: two files and a folder
	)
	l, err := t.l.Marshal()
	if err != nil {
		return err
	}
	room := int64(2*size + folders)
	if err := hold(t.root, inner+"/room", room+int64(steps-1)*further); err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Dir(t.s.LockFile))
	if err != nil {
		return errors.Join(err, t.root.Remove(inner+"/room"))
	}
	defer dir.Close()
	name := filepath.Base(t.s.LockFile) + ".room" // it may be on another disk
	err = hold(dir, name, room+int64(len(l)))
	return errors.Join(err, removeIn(dir, name), t.root.Remove(inner+"/room"))
}

// recover reads the lock file, and finishes the steps of a process that was killed.
func (t *Tx) recover() (err error) {
	if t.l, err = t.s.Read(); err != nil {
		return err
	}
	if err := errors.Join(removeFile(t.s.LockFile+".room"), removeIn(t.root, inner+"/room")); err != nil { // left by a process that was killed in reserve
		return err
	}
	data, err := t.root.ReadFile(stepFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var steps []step
	if err == nil {
		err = json.Unmarshal(data, &steps)
	}
	if err == nil && slices.ContainsFunc(steps, func(st step) bool { return !lock.ValidID(st.ID) || st.Entry != nil && !t.isStaged(st) }) {
		err = errors.New("it names no pack")
	}
	if err == nil && overlap(steps) {
		err = errors.New("it names a place twice")
	}
	if err != nil {
		return fmt.Errorf("reading %q, which says what a killed process had begun: %w; remove it, and call packs-mcp verify", filepath.Join(t.s.Dir, stepFile), err)
	}
	steps = slices.DeleteFunc(steps, func(st step) bool { return !t.mayFinish(st) })
	if len(steps) == 0 {
		return t.done()
	}
	return t.finish(steps)
}

// overlap reports whether a step changes what another step concerns.
func overlap(steps []step) bool {
	in := occupants{}
	for _, st := range steps {
		if in[st.ID] != "" || in.overlapping(st.ID) != "" {
			return true
		}
		in.add(st.ID)
	}
	return false
}

// isStaged reports whether a step's folder is where the store stages packs. The step
// may have come with a project, and the folder will be moved and removed.
func (t *Tx) isStaged(st step) bool {
	parts := strings.Split(st.Staged, "/")
	incoming := len(parts) == 4 && path.Clean(st.Staged) == st.Staged && strings.HasPrefix(st.Staged, inner+"/tmp/") && isStagedName(parts[3])
	if !incoming && st.Staged != path.Join(before(st.ID), "pack") {
		return false
	}
	info, err := t.root.Lstat(path.Dir(st.Staged))
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir()
}

// mayFinish reports whether finishing a step loses only files from the store: the
// place is free, or has the bytes from before or after the step. Otherwise somebody
// edited the pack, or the step came with a project and names one of the user's
// folders; then everything stays as it is.
func (t *Tx) mayFinish(st step) bool {
	if _, err := t.root.Lstat(st.ID); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	for _, e := range []*lock.Entry{st.Entry, st.Before} {
		if e == nil {
			continue
		}
		if is, err := t.holds(st.ID, e); err == nil && is {
			return true
		}
	}
	return false
}

// finish completes steps. It can be interrupted anywhere, and called again.
func (t *Tx) finish(steps []step) error {
	packs := maps.Clone(t.l.Packs)
	var taken []step
	for _, st := range steps {
		if st.Entry == nil {
			if err := t.takeAway(st.ID); err != nil {
				return err
			}
			delete(packs, st.ID)
			taken = append(taken, st)
			continue
		}
		switch is, err := t.exchange(st); {
		case err != nil:
			return fmt.Errorf("giving %q its place: %w", st.ID, err)
		case is == gone: // somebody removed the staged folder; the pack is unchanged
			continue
		case is == placedFree && st.fresh: // there is no version before
		default:
			if err := t.keep(st); err != nil {
				return fmt.Errorf("keeping the version before of %q: %w", st.ID, err)
			}
		}
		taken = append(taken, st)
		packs[st.ID] = *st.Entry
	}
	if len(taken) == 0 {
		return t.done()
	}
	if err := t.note(taken); err != nil {
		return err
	}
	l := *t.l
	l.Packs = packs
	data, err := l.Marshal()
	if err != nil {
		return err
	}
	if err := writeFile(t.s.LockFile, data); err != nil {
		return fmt.Errorf("writing %q: %w", t.s.LockFile, err)
	}
	t.l = &l
	for _, st := range taken {
		if st.Entry != nil {
			continue
		}
		for _, dir := range []string{removed, before(st.ID), placedFile(st.ID)} {
			if err := t.root.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return t.done()
}

// note records beside the packs that they were added, and waits until the notes and
// the packs' places are durable.
func (t *Tx) note(steps []step) error {
	dir, err := t.root.OpenRoot(notes)
	if err != nil {
		return err
	}
	defer dir.Close()
	each := func(waits bool) error {
		for _, st := range steps {
			if st.Entry == nil {
				continue
			}
			data, err := json.Marshal(placed{st.ID, *st.Entry})
			if err == nil {
				err = writeNote(dir, noteName(st.ID), data, waits)
			}
			if err != nil {
				return fmt.Errorf("noting that %q was added: %w", st.ID, err)
			}
		}
		return nil
	}
	if len(steps) > 1 {
		if err := each(false); err != nil {
			return err
		}
		if done, err := t.s.syncDisk(); done || err != nil {
			return err
		}
	}
	if err := each(true); err != nil {
		return err
	}
	return syncIn(dir, ".")
}

// writeNote writes a note anew, in place: until the lock file is written, a process that
// is killed leaves the step, and the next process writes the note again.
func writeNote(dir *os.Root, name string, data []byte, waits bool) error {
	err := create(dir, name, data, waits)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := removeIn(dir, name); err != nil { // it may be a project's link
		return err
	}
	return create(dir, name, data, waits)
}

func (t *Tx) done() error { return t.root.Remove(stepFile) }

// removed is where packs wait to be deleted.
const removed = inner + "/removed"

func (t *Tx) takeAway(id string) error {
	err := t.root.Rename(id, removed)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("taking %q away: %w", id, err)
	}
	for dir := path.Dir(id); dir != "."; dir = path.Dir(dir) {
		_ = t.root.Remove(dir) // fails if others are in it
	}
	return nil
}

// aside is the suffix for the old folder, on a system that cannot exchange two
// folders.
const aside = ".old"

// An outcome is what became of a staged folder.
type outcome int

const (
	gone       outcome = iota // it is not there, and the pack has not its bytes
	inPlace                   // it has its place
	placedFree                // the same, and the place was free
)

// exchange swaps the staged folder with the one in the pack's place.
func (t *Tx) exchange(st step) (outcome, error) {
	if !st.fresh {
		is, err := t.holds(st.Staged, st.Entry)
		if err != nil {
			return gone, err
		}
		if !is { // it was already exchanged, or it is gone
			if is, err = t.holds(st.ID, st.Entry); is {
				return inPlace, err
			}
			return gone, err
		}
	}
	if dir := path.Dir(st.ID); dir != "." {
		if err := t.root.MkdirAll(dir, 0o700); err != nil {
			return gone, err
		}
	}
	if _, err := t.root.Lstat(st.ID); errors.Is(err, fs.ErrNotExist) {
		return placedFree, t.root.Rename(st.Staged, st.ID)
	}
	err := swap(t.root, st.Staged, st.ID)
	if !errors.Is(err, errors.ErrUnsupported) {
		return inPlace, err
	}
	if err := t.root.Rename(st.ID, st.Staged+aside); err != nil {
		return gone, err
	}
	return inPlace, t.root.Rename(st.Staged, st.ID)
}

// holds reports whether a folder has the entry's bytes.
func (t *Tx) holds(dir string, e *lock.Entry) (bool, error) {
	if info, err := t.root.Lstat(dir); err != nil || !info.IsDir() {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	found, err := treeOf(filepath.Join(t.s.Dir, filepath.FromSlash(dir)))
	if err != nil {
		return false, err
	}
	return same(found, e), nil
}

// keep makes the folder that had the place the previous version.
func (t *Tx) keep(st step) error {
	to := path.Join(before(st.ID), "pack")
	if info, err := t.root.Lstat(before(st.ID)); err == nil && !info.IsDir() { // a project's link leads to another pack
		if err := t.root.Remove(before(st.ID)); err != nil {
			return err
		}
	}
	from := st.Staged
	if _, err := t.root.Lstat(from + aside); err == nil {
		from += aside
	}
	if _, err := t.root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil // the place was free, or the folder is already kept
	}
	if st.Before == nil {
		return t.root.RemoveAll(from)
	}
	if from != to {
		if err := t.root.RemoveAll(to); err != nil {
			return err
		}
	}
	if err := t.root.MkdirAll(before(st.ID), 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(st.Before)
	if err != nil {
		return err
	}
	if err := writeIn(t.root, path.Join(before(st.ID), "entry.json"), data); err != nil || from == to {
		return err
	}
	return t.root.Rename(from, to)
}

// Holds reports whether the bytes of the pack's folder match the entry.
func (s *Store) Holds(id string, e lock.Entry) (bool, error) {
	if !lock.ValidID(id) {
		return false, fmt.Errorf("%q is not the id of a pack", id)
	}
	root, err := os.OpenRoot(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer root.Close()
	return (&Tx{s: s, root: root}).holds(id, &e)
}

// treeOf reads a folder as a stage's tree.
func treeOf(dir string) (*stage.Tree, error) {
	d, err := packfs.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.DigestWithin(context.Background(), nil, packfs.Bound{})
	if err != nil {
		return nil, err
	}
	t := &stage.Tree{Bytes: found.Bytes}
	for _, f := range found.Files {
		t.Files = append(t.Files, stage.Stored{Path: f.Path, Exec: f.Exec, Size: f.Size, Digest: f.Digest[len("sha256:"):]})
	}
	for at, target := range found.Links() {
		t.Files = append(t.Files, stage.Stored{Path: at, Target: target})
	}
	return t, nil
}

// same reports whether the files are those of the entry. Windows does not record
// whether a file is executable, so there only paths and bytes count.
func same(t *stage.Tree, e *lock.Entry) bool {
	if runtime.GOOS == "windows" {
		return t.ContentDigest() == e.ContentDigest
	}
	return t.Digest() == e.Digest
}
