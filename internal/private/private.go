// Package private keeps state files and folders that only the user may change. A
// [File] is read only if nobody else could have written it, and is replaced as a
// whole, under a lock that other processes respect. A [Folder] is shared by
// several servers, of which one at a time changes its entries.
//
// It does not know what is in a file, and it cannot tell which of the user's own
// programs wrote it; package grantfile therefore seals its content.
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

// A RefusedError says why a file was not used. Its content is ignored, and it is
// not overwritten: a person must look at it.
type RefusedError struct {
	What   string // what the file holds: "attached packs"
	Path   string // of the file, or of its folder if that is the problem
	Reason string // "it is a symbolic link"
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refusing %s from %q: %s", e.What, e.Path, e.Reason)
}

// lockWait is enough for some hundred changes by other processes, and less than
// any client waits for an answer.
const lockWait = 10 * time.Second

// A File is one state file. Its methods are safe for concurrent use, including
// by several processes, except that [File.Write] must be called inside
// [File.Lock].
type File struct {
	Path string // the lock and the next content are beside it, as PATH.lock and .NAME.new
	What string // what it holds, for errors: "attached packs"
	Max  int    // bytes; a larger file is refused
	// Secret also refuses a file that other users may read.
	Secret bool
	// Guarded also refuses a file whose folder other users may write to: they
	// could replace the file.
	Guarded bool
	// Remade says that the file can be recreated, and that its reader detects
	// whether it is whole. Write then does not wait for the disk, and a power
	// failure may leave anything in the file.
	Remade bool
	// Now is the clock for stamps; nil is time.Now.
	Now func() time.Time
}

// Refuse returns the [*RefusedError] for this file.
func (f *File) Refuse(format string, args ...any) error {
	return &RefusedError{What: f.What, Path: f.Path, Reason: fmt.Sprintf(format, args...)}
}

// Stat returns how the file looks now. The error matches [fs.ErrNotExist] if the
// file does not exist, and is a [*RefusedError] if it is a link, not a regular
// file, another user's, or open to others.
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

// Open opens the file for reading, whatever its size, and returns how it looked
// just after. Its errors are those of [File.Stat].
func (f *File) Open() (*os.File, fs.FileInfo, error) {
	// Check before opening, so that a device or pipe is never opened, except in
	// a race.
	if _, err := f.Stat(); err != nil {
		return nil, nil, err
	}
	return f.open()
}

// open opens what has the name now, without waiting for it.
func (f *File) open() (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", f.What, err)
	}
	// Check again, for the open file and not for what had its name before.
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
	info, err := os.Stat(dir) // follow links: anyone who may change a link to the folder controls it anyway
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

// Lock calls do while no other process does the same for this file, and waits
// for one that does. It creates the file's folder first.
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

// TryLock is Lock, but does not wait: if another process has the lock, it does
// not call do, and done is false.
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

// lock returns the file's lock, not yet taken. The flags keep a link or a pipe
// in its place from being followed or waited for.
func (f *File) lock() *flock.Flock {
	return flock.New(f.Path+".lock", flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|openFlags))
}

// acquire takes the lock. It waits in the kernel: polling would seldom find a
// lock free that another process takes again and again.
func (f *File) acquire(wait time.Duration) (*flock.Flock, error) {
	lock := f.lock()
	result := make(chan error, 1)
	go func() {
		err := lock.Lock()
		for errors.Is(err, syscall.EINTR) { // some file systems do not resume by themselves
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
		// The wait cannot be cancelled; if it gets the lock, release it at once.
		go func() {
			if <-result == nil {
				lock.Unlock()
			}
		}()
		return nil, fmt.Errorf("another program has had the lock %q for %v", lock.Path(), wait)
	}
}

// Write replaces the file with data, completely or not at all, with mode 0600.
// It must be called inside [File.Lock]. If only the last step fails, which makes
// the file survive a power failure, the error is not nil but the new content is
// there. See Remade for a file that need not survive one.
func (f *File) Write(data []byte) error {
	if err := f.replace(data); err != nil {
		return fmt.Errorf("writing %s: %w", f.What, err)
	}
	return nil
}

func (f *File) replace(data []byte) (err error) {
	// One name is enough, since there is one writer: the next writer removes
	// what a killed one left.
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

// The name of the next content is the file's name between these.
const nextBegin, nextEnd = ".", ".new"

// Unfinished returns the name of the file whose next content is called name. If
// that content is old, its writer never finished it.
func Unfinished(name string) (of string, ok bool) {
	of, begins := strings.CutPrefix(name, nextBegin)
	of, ends := strings.CutSuffix(of, nextEnd)
	return of, begins && ends
}

// Sync makes renames in the file's folder survive a power failure.
func (f *File) Sync() error { return syncDir(filepath.Dir(f.Path)) }

// CheckVersion refuses data, the file's content, if its version is not the known one. Call
// it before Decode, since a newer program may write members that this one does not know.
// It accepts data without a readable version, which Decode refuses.
func (f *File) CheckVersion(data []byte, known int) error {
	var v struct {
		Version int `json:"version"`
	}
	switch err := json.Unmarshal(data, &v); {
	case err != nil || v.Version == known:
		return nil
	case v.Version > known:
		return f.Refuse("its version is %d, and this program knows %d: a newer packs-mcp wrote it, so update this one", v.Version, known)
	}
	return f.Refuse("its version is %d, and this program knows %d", v.Version, known)
}

// Decode decodes data, the file's content, as exactly one JSON value without
// unknown members. Its error is a [*RefusedError].
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
