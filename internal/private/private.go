// Package private keeps files and folders of state that only the user may change.
// A [File] is read only when nobody else could have written it, and is replaced
// whole, under a lock that other processes respect. A [Folder] is shared by several
// servers, one of which changes its entries at a time.
//
// It does not know what is in a file, and it cannot tell which of the user's own
// programs wrote it; package grantfile seals what it keeps for that.
package private

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A RefusedError says why a file was not used. Nothing in it counts, and it is
// not overwritten: a person has to look at it.
type RefusedError struct {
	What   string // what the file holds: "attached packs"
	Path   string // of the file, or of its folder when that is what is wrong
	Reason string // "it is a symbolic link"
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refusing %s from %q: %s", e.What, e.Path, e.Reason)
}

// lockWait is enough for some hundred changes of other processes, and less than
// anybody waits for an answer.
const lockWait = 10 * time.Second

// A File is one file of state. Its methods are safe for concurrent use, also by
// several processes, except that [File.Write] belongs inside of [File.Lock].
type File struct {
	Path string // the lock and the next content are beside it, as PATH.lock and .NAME.new
	What string // what it holds, for errors: "attached packs"
	Max  int    // bytes; a larger file is refused
	// Secret refuses the file also when other users may read it.
	Secret bool
	// Guarded refuses the file also when other users may write to its folder:
	// they could put another in its place.
	Guarded bool
	// Remade says that the file can be made anew, and that who reads it finds out
	// whether it is whole: Write does not wait for the disk, and a power failure may
	// leave anything in the file.
	Remade bool
	// Now is the clock that stamps are made with; nil is time.Now.
	Now func() time.Time
}

// Refuse returns the [*RefusedError] for this file.
func (f *File) Refuse(format string, args ...any) error {
	return &RefusedError{What: f.What, Path: f.Path, Reason: fmt.Sprintf(format, args...)}
}

// Stat says how the file looks now. The error matches [fs.ErrNotExist] when it
// is not there, and is a [*RefusedError] when it is a link, not a regular file,
// another user's, or open to others.
func (f *File) Stat() (Stamp, error) {
	info, err := os.Lstat(f.Path)
	if err != nil {
		return Stamp{}, fmt.Errorf("reading %s: %w", f.What, err)
	}
	if err := f.check(info); err != nil {
		return Stamp{}, err
	}
	if err := f.checkFolder(); err != nil {
		return Stamp{}, err
	}
	return f.stamp(info), nil
}

// Read returns the content, and how the file looked just before it was read.
// Its errors are those of [File.Stat], and a [*RefusedError] for a file that is
// too large.
func (f *File) Read() ([]byte, Stamp, error) {
	file, info, err := f.Open()
	if err != nil {
		return nil, Stamp{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, int64(f.Max)+1))
	if err != nil {
		return nil, Stamp{}, fmt.Errorf("reading %s: %w", f.What, err)
	}
	if len(data) > f.Max {
		return nil, Stamp{}, f.Refuse("it is larger than %d bytes", f.Max)
	}
	return data, f.stamp(info), nil
}

// Open opens the file for reading, whatever its size, and says how it looked just
// after. Its errors are those of [File.Stat].
func (f *File) Open() (*os.File, fs.FileInfo, error) {
	// Before it is opened, so that no device or pipe ever is, but by accident.
	if _, err := f.Stat(); err != nil {
		return nil, nil, err
	}
	return f.open()
}

// open does so for what has the name by now, and waits for none of it.
func (f *File) open() (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", f.What, err)
	}
	// Again, for the file that is open and not for what had its name before.
	info, err := file.Stat()
	if err != nil {
		err = fmt.Errorf("reading %s: %w", f.What, err)
	} else {
		err = f.check(info)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func (f *File) check(info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return f.Refuse("it is a symbolic link")
	case !info.Mode().IsRegular():
		return f.Refuse("it is not a regular file")
	case info.Mode().Perm()&writableByOthers != 0:
		return f.Refuse("other users may write to it (mode %#o)", info.Mode().Perm())
	case f.Secret && info.Mode().Perm()&readableByOthers != 0:
		return f.Refuse("other users may read it (mode %#o)", info.Mode().Perm())
	case !ownedByUs(info):
		return f.Refuse("it belongs to another user")
	}
	return nil
}

func (f *File) checkFolder() error {
	if !f.Guarded {
		return nil
	}
	dir := filepath.Dir(f.Path)
	info, err := os.Stat(dir) // whoever may change a link to it has its folder
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.What, err)
	}
	reason := ""
	switch {
	case !info.IsDir():
		reason = "it is not a folder"
	case folderOpen(info):
		reason = fmt.Sprintf("other users may write to this folder (mode %#o)", info.Mode().Perm())
	case !ownedByUs(info):
		reason = "this folder belongs to another user"
	default:
		return nil
	}
	return &RefusedError{What: f.What, Path: dir, Reason: reason}
}

// Lock calls do while no other process does the same for this file, and waits for
// one that does. It makes the file's folder first.
func (f *File) Lock(do func() error) error {
	if err := f.makeFolder(); err != nil {
		return err
	}
	lock, err := f.acquire(lockWait)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.What, err)
	}
	defer lock.Unlock()
	return do()
}

// TryLock is Lock that waits for nobody: when another has the lock, it does not
// call do, and done is false.
func (f *File) TryLock(do func() error) (done bool, err error) {
	if err := f.makeFolder(); err != nil {
		return false, err
	}
	lock := f.lock()
	taken, err := lock.TryLock()
	for errors.Is(err, syscall.EINTR) { // see acquire
		taken, err = lock.TryLock()
	}
	if err != nil {
		return false, fmt.Errorf("writing %s: taking the lock %q: %w", f.What, lock.Path(), err)
	}
	if !taken {
		return false, nil
	}
	defer lock.Unlock()
	return true, do()
}

func (f *File) makeFolder() error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", f.What, err)
	}
	return f.checkFolder()
}

// lock is the file's, not taken. The flags keep a link or a pipe in its place from
// being followed or waited for.
func (f *File) lock() *flock.Flock {
	return flock.New(f.Path+".lock", flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|openFlags))
}

// acquire waits in the kernel: whoever only looked at times would seldom see a
// lock free that another process takes again and again.
func (f *File) acquire(wait time.Duration) (*flock.Flock, error) {
	lock := f.lock()
	result := make(chan error, 1)
	go func() {
		err := lock.Lock()
		for errors.Is(err, syscall.EINTR) { // some file systems do not go on by themselves
			err = lock.Lock()
		}
		result <- err
	}()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case err := <-result:
		if err != nil {
			return nil, fmt.Errorf("taking the lock %q: %w", lock.Path(), err)
		}
		return lock, nil
	case <-timeout.C:
		// The wait cannot be called off; what comes of it is given back at once.
		go func() {
			if <-result == nil {
				lock.Unlock()
			}
		}()
		return nil, fmt.Errorf("another program has had the lock %q for %v", lock.Path(), wait)
	}
}

// Write puts data in the place of the file, whole or not at all, and mode 0600.
// It is called inside of [File.Lock]. When only the last step fails, of making
// it survive a power failure, the error is not nil and the new content is there. See
// Remade for a file that need not.
func (f *File) Write(data []byte) error {
	if err := f.replace(data); err != nil {
		return fmt.Errorf("writing %s: %w", f.What, err)
	}
	return nil
}

func (f *File) replace(data []byte) (err error) {
	// One name, since there is one writer: what a killed one left is cleared
	// away by the next.
	dir := filepath.Dir(f.Path)
	next := filepath.Join(dir, nextBegin+filepath.Base(f.Path)+nextEnd)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(next)
		}
	}()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if !f.Remade {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(next, f.Path); err != nil || f.Remade {
		return err
	}
	return f.Sync()
}

// The name of what is being written is that of the file between these.
const nextBegin, nextEnd = ".", ".new"

// Unfinished returns the name of the file of which one with this name is the next
// content, that nobody finished if it is old.
func Unfinished(name string) (of string, ok bool) {
	of, begins := strings.CutPrefix(name, nextBegin)
	of, ends := strings.CutSuffix(of, nextEnd)
	return of, begins && ends
}

// Sync makes what was renamed in the file's folder survive a power failure.
func (f *File) Sync() error { return syncDir(filepath.Dir(f.Path)) }

// Decode reads data, which is the file's content, as exactly one JSON value
// without unknown members. Its error is a [*RefusedError].
func (f *File) Decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return f.Refuse("it is not what was written: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return f.Refuse("it is not what was written: more follows the end")
	}
	return nil
}
