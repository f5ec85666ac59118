// Package workspaces keeps the folders that runs write to, one for each chat, and
// removes old ones.
//
// Programs of packs fill these folders, and a person may want the results. So a
// workspace outlives its chat, and is removed only when it is old, or to free space.
// One that a server uses stays. No link is followed.
package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// A workspace is in use while its server holds the lock named by its handle, which it
// releases at the latest when it ends. The locks are in a folder beside the
// workspaces, where no run can write.
const (
	locksSuffix = "-in-use"
	sweepLock   = "sweep" // held by the server that removes old workspaces
)

func lockOf(dir, name string) *flock.Flock {
	return flock.New(filepath.Join(dir+locksSuffix, name))
}

// handleLength is how many hexadecimal digits a handle has.
const handleLength = 32

// A Use is a workspace in use.
type Use struct {
	dir    string
	lock   *flock.Flock
	joined bool // other servers may use it, too
}

// Make makes the workspace with a new handle in dir, and marks it as in use. The
// handle has 32 hexadecimal digits.
func Make(dir, handle string) (*Use, error) {
	if !isHandle(handle) {
		return nil, fmt.Errorf("making a workspace: %q is not a handle", handle)
	}
	dir = filepath.Clean(dir)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(dir+locksSuffix, 0o700)); err != nil {
		return nil, fmt.Errorf("making a workspace: %w", err)
	}
	u := &Use{dir: filepath.Join(dir, handle)}
	var err error
	if u.lock, err = acquire(dir, handle, (*flock.Flock).TryLockContext); err != nil {
		return nil, fmt.Errorf("making the workspace %q: %w", u.dir, err)
	}
	if err := os.Mkdir(u.dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("making a workspace: %w", err), u.unlock())
	}
	return u, nil
}

// Join marks a workspace as in use that other servers may use, too. It creates a missing
// workspace. The workspace stays when the use ends.
func Join(dir, handle string) (*Use, error) {
	if !isHandle(handle) {
		return nil, fmt.Errorf("opening a workspace: %q is not a handle", handle)
	}
	dir = filepath.Clean(dir)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(dir+locksSuffix, 0o700)); err != nil {
		return nil, fmt.Errorf("opening a workspace: %w", err)
	}
	u := &Use{dir: filepath.Join(dir, handle), joined: true}
	var err error
	if u.lock, err = acquire(dir, handle, (*flock.Flock).TryRLockContext); err != nil {
		return nil, fmt.Errorf("opening the workspace %q: %w", u.dir, err)
	}
	if err = os.Mkdir(u.dir, 0o700); errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = os.Lstat(u.dir); err == nil && !info.IsDir() {
			err = errors.New("it is not a folder")
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the workspace %q: %w", u.dir, err), u.lock.Unlock())
	}
	return u, nil
}

// sweepTime is how long a server waits for another one that measures or removes the same
// workspace.
const sweepTime = 10 * time.Second

// acquire takes the lock of a workspace with try, a method of the lock.
func acquire(dir, handle string, try func(*flock.Flock, context.Context, time.Duration) (bool, error)) (*flock.Flock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	for {
		lock := lockOf(dir, handle)
		if _, err := try(lock, ctx, 5*time.Millisecond); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				err = errors.New("another server uses it, or is removing it; try again")
			}
			return nil, errors.Join(err, lock.Close())
		}
		if standing(lock) {
			return lock, nil
		}
		if err := lock.Close(); err != nil {
			return nil, err
		}
	}
}

// Dir returns the folder.
func (u *Use) Dir() string { return u.dir }

// Leave ends the use. It removes the folder if it is empty and no other server may use
// it; otherwise the folder stays for the person.
func (u *Use) Leave() error {
	if u.joined {
		return u.lock.Unlock() // other servers may hold the lock, so its file stays
	}
	_ = os.Remove(u.dir) // fails if the folder is not empty
	return u.unlock()
}

func (u *Use) unlock() error { return unlock(u.lock) }

// unlock removes a lock. Its file goes first where the system allows that, so that a server
// that waits for the lock sees that it is of no use any more; see standing.
func unlock(lock *flock.Flock) error {
	held := os.Remove(lock.Path())
	err := lock.Unlock()
	if held != nil && !errors.Is(held, fs.ErrNotExist) { // an open file cannot be removed here
		_ = os.Remove(lock.Path()) // fails if another server has opened it; a later sweep removes it
	}
	return err
}

// standing reports whether a lock that is held is the one that others find. Its file may
// have been removed while it was waited for.
func standing(lock *flock.Flock) bool {
	have, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(have, there)
}

// Limits bound the workspaces that nobody uses.
type Limits struct {
	Age   time.Duration // since the last change in one
	Bytes int64         // all of them together
}

// recent is how long after its last change a workspace is never removed to free space.
const recent = 24 * time.Hour

// maxMeasured bounds how many entries of a workspace are measured.
const maxMeasured = 100_000

// Removed describes a workspace that was removed.
type Removed struct {
	Dir   string
	Bytes int64
	Used  time.Time // last change in it
	Room  bool      // removed to free space, though it was not old
}

// found is a workspace that nobody used when it was measured.
type found struct {
	Removed
	handle string
}

// Sweep removes from dir the workspaces that nobody uses: those last changed longer ago
// than l.Age, and then the least recently changed ones until the rest fit l.Bytes. One
// that changed within the last day stays in any case. If another server is sweeping,
// Sweep does nothing. The error reports workspaces that could not be removed, which does
// not keep Sweep from removing others.
func Sweep(ctx context.Context, dir string, l Limits) (removed []Removed, err error) {
	now := time.Now()
	dir = filepath.Clean(dir)
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for old workspaces: %w", err)
	}
	defer root.Close()
	if err := os.MkdirAll(dir+locksSuffix, 0o700); err != nil {
		return nil, fmt.Errorf("looking for old workspaces: %w", err)
	}
	sweeping := lockOf(dir, sweepLock)
	if locked, err := sweeping.TryLock(); err != nil || !locked {
		return nil, err
	}
	defer func() { err = errors.Join(err, sweeping.Unlock()) }()
	all, err := unused(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	var bytes int64
	for _, f := range all {
		bytes += f.Bytes
	}
	slices.SortFunc(all, func(a, b found) int { return a.Used.Compare(b.Used) })
	var problems []error
	for _, f := range all {
		unchanged := now.Sub(f.Used)
		if unchanged <= l.Age {
			if bytes <= l.Bytes || unchanged <= recent {
				break // those that follow are newer
			}
			f.Room = true
		}
		switch gone, err := f.remove(root, dir); {
		case err != nil:
			problems = append(problems, fmt.Errorf("removing the workspace %q: %w", f.Dir, err))
			continue
		case !gone:
			continue
		}
		bytes -= f.Bytes
		removed = append(removed, f.Removed)
	}
	return removed, errors.Join(problems...)
}

// remove removes the workspace, unless a server uses it or it was changed since it was
// measured.
func (f *found) remove(root *os.Root, dir string) (gone bool, err error) {
	lock, err := taken(dir, f.handle)
	if lock == nil {
		return false, err
	}
	if used, _ := measure(root, f.handle); used.Equal(f.Used) {
		gone, err = true, remove(root, f.handle)
	}
	return gone, errors.Join(err, unlock(lock))
}

// unused returns the workspaces that no server uses now. It removes locks without a
// workspace, which killed servers leave.
func unused(ctx context.Context, root *os.Root, dir string) (all []found, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("looking for old workspaces: %w", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		handle := e.Name()
		if !isHandle(handle) || !e.IsDir() {
			continue // a link, or not a workspace
		}
		lock, err := taken(dir, handle)
		if err != nil {
			return all, err
		}
		if lock == nil {
			continue
		}
		used, bytes := measure(root, handle)
		all = append(all, found{Removed{Dir: filepath.Join(dir, handle), Bytes: bytes, Used: used}, handle})
		if err := unlock(lock); err != nil {
			return all, err
		}
	}
	locks, err := os.ReadDir(dir + locksSuffix)
	if err != nil {
		return all, fmt.Errorf("looking for old workspaces: %w", err)
	}
	for _, e := range locks {
		if _, err := root.Lstat(e.Name()); !isHandle(e.Name()) || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		lock, err := taken(dir, e.Name())
		if lock != nil {
			err = unlock(lock)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// taken takes the lock of a workspace. It returns nil if a server uses the workspace.
func taken(dir, handle string) (*flock.Flock, error) {
	lock := lockOf(dir, handle)
	locked, err := lock.TryLock()
	if err == nil && locked && standing(lock) {
		return lock, nil
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		err = fmt.Errorf("looking for old workspaces: %w", err)
	}
	return nil, err
}

// measure returns the last time anything in a workspace changed, and how many bytes it
// holds, as far as it can be read.
func measure(root *os.Root, handle string) (used time.Time, bytes int64) {
	n := 0
	_ = fs.WalkDir(root.FS(), handle, func(_ string, d fs.DirEntry, err error) error {
		if n++; n > maxMeasured {
			return fs.SkipAll
		}
		if d == nil {
			return nil
		}
		info, infoErr := d.Info()
		if infoErr != nil {
			return nil
		}
		if info.ModTime().After(used) {
			used = info.ModTime()
		}
		if info.Mode().IsRegular() {
			bytes += info.Size()
		}
		if err != nil {
			return fs.SkipDir // a program made it unreadable
		}
		return nil
	})
	return used, bytes
}

// remove removes a workspace, even if a program made parts of it inaccessible.
func remove(root *os.Root, handle string) error {
	err := root.RemoveAll(handle)
	if err == nil {
		return nil
	}
	_ = fs.WalkDir(root.FS(), handle, func(name string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(name, 0o700) // RemoveAll reports what remains
		}
		return nil
	})
	return root.RemoveAll(handle)
}

func isHandle(name string) bool {
	return len(name) == handleLength && strings.Trim(name, "0123456789abcdef") == ""
}
