package changes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// A want is a lock that a turn needs: exclusive on its own folders, shared on
// every folder above, so that turns in folders above and below exclude each
// other and turns side by side do not.
type want struct {
	Key       string `json:"key"` // device and inode
	Exclusive bool   `json:"exclusive"`
}

// wants returns the locks for the folders, in the one order in which everybody
// takes them.
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
	d, err := tree.Open(dir)
	if errors.Is(err, fs.ErrPermission) { // a folder above that may be passed and not read
		info, err := os.Stat(dir)
		if err != nil {
			return "", err
		}
		return key(tree.MetaOf(info), dir), nil
	}
	if err != nil {
		return "", err
	}
	defer d.Close()
	m, err := d.Stat()
	return key(m, dir), err
}

func key(m tree.Meta, dir string) string {
	if m.Ino == 0 { // the path has to do
		return fmt.Sprintf("%x", strings.ToLower(dir))
	}
	return fmt.Sprintf("%x-%x", m.Dev, m.Ino)
}

// A lock is what a turn holds. What dies with a process is freed with it.
type lock struct{ held []*flock.Flock }

// A card is what a turn writes into the files that it has locked
// exclusively, for those who wait. It means nothing once the lock is free.
type card struct {
	Holder
	Wants []want `json:"wants"`
}

// acquire takes the locks in order, and waits for each in the kernel, which is
// fair. wait is false: [errTaken] says that one is not free.
func (s *Store) acquire(ctx context.Context, c card, wait bool, waiting func(Holder)) (*lock, error) {
	l := &lock{}
	for _, w := range c.Wants {
		f, err := s.take(ctx, w, wait, func() {
			if waiting != nil {
				waiting(s.holder(c))
				waiting = nil
			}
		})
		if err != nil {
			l.release()
			if ctx.Err() != nil {
				err = &WaitError{Holder: s.holder(c), Err: context.Cause(ctx)}
			}
			return nil, err
		}
		l.held = append(l.held, f)
		if w.Exclusive {
			// At once, and not when it has all of them: until then the card in the file
			// would be of an earlier turn.
			s.sign(c, w)
		}
	}
	return l, nil
}

var errTaken = errors.New("another run has the turn")

func (s *Store) lockFile(name string) *flock.Flock {
	return flock.New(filepath.Join(s.turns, name), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR))
}

// take takes one lock. busy is called once before it waits.
func (s *Store) take(ctx context.Context, w want, wait bool, busy func()) (*flock.Flock, error) {
	f := s.lockFile(w.Key)
	try, block := f.TryRLock, f.RLock
	if w.Exclusive {
		try, block = f.TryLock, f.Lock
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
		return nil, errTaken
	}
	busy()
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
		// A wait in the kernel cannot be called off. What comes of it is given back
		// at once.
		go func() {
			<-done
			_ = f.Close()
		}()
		return nil, ctx.Err()
	}
}

// sign writes the card into the file of a lock. It only informs: where locks
// keep others from reading, nobody is told.
func (s *Store) sign(c card, w want) {
	c.Since = s.now()
	data, err := json.Marshal(c)
	if err != nil {
		return
	}
	// Over the old card, since emptying the file first takes milliseconds. What is
	// left of a longer one comes after the first JSON value, and is not read.
	if f, err := os.OpenFile(filepath.Join(s.turns, w.Key), os.O_WRONLY, 0); err == nil {
		_, _ = f.Write(append(data, '\n'))
		_ = f.Close()
	}
}

func (l *lock) release() {
	for _, f := range slices.Backward(l.held) {
		_ = f.Close()
	}
	l.held = nil
}

// holder returns who has one of the locks that own needs, as far as that can be
// told.
func (s *Store) holder(own card) Holder {
	entries, _ := os.ReadDir(s.turns)
	for _, e := range entries {
		f := s.lockFile(e.Name())
		free, err := f.TryRLock()
		_ = f.Close()
		if free || err != nil { // nobody has it exclusively
			continue
		}
		file, err := os.Open(filepath.Join(s.turns, e.Name()))
		if err != nil {
			continue
		}
		var c card
		err = json.NewDecoder(io.LimitReader(file, 1<<20)).Decode(&c)
		_ = file.Close()
		itself := c.PID == own.PID && c.Run == own.Run // which has some of them, and waits for the others
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
