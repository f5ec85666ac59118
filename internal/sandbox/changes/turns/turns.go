// Package turns lets one run at a time change a folder: locks on the folder and
// on those above it, shared by all servers of a user and freed by the system
// when a process dies.
//
// It does not know what a run does with its turn.
package turns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// Turns has the locks of one user's runs.
type Turns struct {
	dir string // one file for each folder, named by its inode
}

// Open returns the turns whose locks are in the private folder dir. It makes the folder
// if needed.
func Open(dir string) (*Turns, error) { return &Turns{dir}, tree.Private(dir) }

// A Holder is a run that has the turn in a folder, or gets it next. It may belong to
// another server. The zero Holder is unknown.
type Holder struct {
	Run    record.Run `json:"run"`
	PID    int        `json:"pid"`
	Since  time.Time  `json:"since"`
	Folder string     `json:"folder"` // the first one of its turn
}

// String names the run, its folder and its process.
func (h Holder) String() string {
	switch {
	case h.PID == 0:
		return "another run"
	case h.Run.ID == "" && h.Folder == "": // it holds the lock on records, not a folder
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("run %q in %q (process %d)", h.Run.ID, h.Folder, h.PID)
}

// A WaitError says that the wait for a turn ended before the turn was free.
type WaitError struct {
	Holder Holder // when the wait ended
	Err    error  // the cause of the context's end
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("waiting for %s: %v", e.Holder, e.Err)
}

func (e *WaitError) Unwrap() error { return e.Err }

// Take waits for the turn in the folders with these paths, which must have no links.
// With wait false, it returns [ErrTaken] instead of waiting.
//
// If the turn is not free, Take calls waiting once with a holder, unless waiting is nil.
// If ctx ends first, the error is a [*WaitError].
func (t *Turns) Take(ctx context.Context, h Holder, wait bool, waiting func(Holder), paths ...string) (*Lock, error) {
	list, err := wants(paths)
	if err != nil {
		return nil, fmt.Errorf("taking the turn: %w", err)
	}
	return t.acquire(ctx, card{h, list}, wait, waiting)
}

// Alone calls do while no other process is in an Alone with the same name. With wait
// false, it returns [ErrTaken] instead of waiting. If ctx ends first, the error is a
// [*WaitError]: the process that has the lock may be stopped.
func (t *Turns) Alone(ctx context.Context, name string, wait bool, do func() error) error {
	l, err := t.acquire(ctx, card{Holder{PID: os.Getpid()}, []want{{Key: name, Exclusive: true}}}, wait, nil)
	if err != nil {
		return err
	}
	defer l.Release()
	return do()
}

// A want is a lock that a turn needs: exclusive on its own folders and shared on
// every folder above. So turns in nested folders exclude each other, and turns side
// by side do not.
type want struct {
	Key       string `json:"key"` // device and inode
	Exclusive bool   `json:"exclusive"`
}

// wants returns the locks for the folders, in the fixed order in which everyone takes
// them.
func wants(paths []string) ([]want, error) {
	all := map[string]bool{} // :: key → exclusive
	for _, p := range paths {
		for dir, own := p, true; ; dir, own = filepath.Dir(dir), false {
			key, err := keyOf(dir)
			if err != nil {
				return nil, err
			}
			all[key] = all[key] || own
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	var list []want
	for key, exclusive := range all {
		list = append(list, want{key, exclusive})
	}
	slices.SortFunc(list, func(a, b want) int { return cmp.Compare(a.Key, b.Key) })
	return list, nil
}

func keyOf(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	m := tree.MetaOf(info)
	if m.Ino == 0 { // no inodes on this system, so use the path
		return fmt.Sprintf("%x", strings.ToLower(dir)), nil
	}
	return fmt.Sprintf("%x-%x", m.Dev, m.Ino), nil
}

// A Lock is the lock of a turn. The system frees it when the process dies.
type Lock struct{ held []*flock.Flock }

// A card is written by a turn into its exclusively locked files, for those who wait.
// It means nothing once the lock is free.
type card struct {
	Holder
	Wants []want `json:"wants"`
}

// acquire takes the locks in order, and waits for each in the kernel, which is fair.
// If wait is false and one is not free, it returns [ErrTaken].
func (t *Turns) acquire(ctx context.Context, c card, wait bool, waiting func(Holder)) (*Lock, error) {
	l := &Lock{}
	for _, w := range c.Wants {
		f, err := t.take(ctx, w, wait, func() {
			if waiting != nil {
				waiting(t.holder(c))
				waiting = nil
			}
		})
		if err != nil {
			l.Release()
			if ctx.Err() != nil {
				err = &WaitError{Holder: t.holder(c), Err: context.Cause(ctx)}
			}
			return nil, err
		}
		l.held = append(l.held, f)
		if w.Exclusive {
			// Now, and not only with all locks: until then, the file would have an earlier
			// turn's card.
			t.sign(c, w)
		}
	}
	return l, nil
}

// ErrTaken says that another run has the turn.
var ErrTaken = errors.New("another run has the turn")

// lockFile returns the lock of that name. flag is [os.O_CREATE] if its file may have
// to be made, otherwise 0.
func (t *Turns) lockFile(name string, flag int) *flock.Flock {
	return flock.New(filepath.Join(t.dir, name), flock.SetPermissions(0o600), flock.SetFlag(os.O_RDWR|flag))
}

// take takes one lock. busy is called once before it waits.
func (t *Turns) take(ctx context.Context, w want, wait bool, busy func()) (*flock.Flock, error) {
	f := t.lockFile(w.Key, os.O_CREATE)
	try := f.TryRLock
	if w.Exclusive {
		try = f.TryLock
	}
	ok, err := try()
	for errors.Is(err, syscall.EINTR) {
		ok, err = try()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("taking the turn: %w", err)
	case ok:
		return f, nil
	case !wait:
		_ = f.Close()
		return nil, ErrTaken
	}
	busy()
	// The file exists by now. An abandoned wait must not make it again after its folder
	// was removed.
	f = t.lockFile(w.Key, 0)
	block := f.RLock
	if w.Exclusive {
		block = f.Lock
	}
	done := make(chan error, 1)
	go func() {
		err := block()
		for errors.Is(err, syscall.EINTR) {
			err = block()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return f, err
	case <-ctx.Done():
		// A wait in the kernel cannot be cancelled. If it gets the lock, the lock is
		// released at once.
		go func() {
			<-done
			_ = f.Close()
		}()
		return nil, ctx.Err()
	}
}

// sign writes the card into the file of a lock. It is only informative: where a lock
// keeps others from reading, they cannot see it.
func (t *Turns) sign(c card, w want) {
	c.Since = time.Now()
	data, err := json.Marshal(c)
	if err != nil {
		return
	}
	// Overwrite the old card, since truncating the file first takes milliseconds. The
	// rest of a longer card comes after the first JSON value, and is not read.
	if f, err := os.OpenFile(filepath.Join(t.dir, w.Key), os.O_WRONLY, 0); err == nil {
		_, _ = f.Write(append(data, '\n'))
		_ = f.Close()
	}
}

// File opens the file of one of the exclusive locks.
func (l *Lock) File() (*os.File, error) {
	for _, f := range l.held {
		if f.Locked() {
			return os.OpenFile(f.Path(), os.O_RDWR, 0)
		}
	}
	return nil, os.ErrNotExist
}

// Release ends the turn.
func (l *Lock) Release() {
	for _, f := range slices.Backward(l.held) {
		_ = f.Close()
	}
	l.held = nil
}

// holder returns a run that has one of the locks that own needs, as far as can be
// determined.
func (t *Turns) holder(own card) Holder {
	entries, _ := os.ReadDir(t.dir)
	for _, e := range entries {
		f := t.lockFile(e.Name(), 0)
		free, err := f.TryRLock()
		_ = f.Close()
		if free || err != nil { // no run has it exclusively
			continue
		}
		file, err := os.Open(filepath.Join(t.dir, e.Name()))
		if err != nil {
			continue
		}
		var c card
		err = json.NewDecoder(io.LimitReader(file, 1<<20)).Decode(&c)
		_ = file.Close()
		itself := c.PID == own.PID && c.Run == own.Run // own has some of the locks and waits for others
		if err == nil && !itself && c.blocks(own.Wants) {
			return c.Holder
		}
	}
	return Holder{}
}

// blocks reports whether the card's turn keeps another from taking its locks.
func (c *card) blocks(wants []want) bool {
	for _, a := range c.Wants {
		for _, b := range wants {
			if a.Key == b.Key && (a.Exclusive || b.Exclusive) {
				return true
			}
		}
	}
	return false
}
