package attach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// A RefusedError says why a state file was not used. Nothing in it counts, and
// it is not overwritten: a person has to look at it.
type RefusedError struct {
	Path   string
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refusing attached packs from %q: %s", e.Path, e.Reason)
}

const (
	version   = 1
	maxFile   = 4 << 20 // 4 MiB, some twenty thousand packs
	lockWait  = 5 * time.Second
	lockRetry = 10 * time.Millisecond
)

// file is the shape of the state file.
type file struct {
	Version int `json:"version"`
	Set
}

// A Store is the state file. Safe for concurrent use, also by several
// processes.
type Store struct{ path string }

// Open returns the Store in the file path; it touches no disk yet. The file,
// and its directory, are made by the first Update.
func Open(path string) *Store { return &Store{path: path} }

// Path returns the path of the state file.
func (s *Store) Path() string { return s.path }

// Load returns what is kept, an empty Set when nothing is yet. With an error,
// a [*RefusedError] when the file is a symlink, can be written by others,
// belongs to another user or does not parse, the Set is empty.
func (s *Store) Load() (Set, error) {
	info, err := os.Lstat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, nil
	}
	if err != nil {
		return Set{}, fmt.Errorf("reading attached packs: %w", err)
	}
	if err := s.check(info); err != nil {
		return Set{}, err
	}
	f, err := os.OpenFile(s.path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return Set{}, fmt.Errorf("reading attached packs: %w", err)
	}
	defer f.Close()
	// Again, for the file that is open and not for what had its name before.
	info, err = f.Stat()
	if err != nil {
		return Set{}, fmt.Errorf("reading attached packs: %w", err)
	}
	if err := s.check(info); err != nil {
		return Set{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Set{}, fmt.Errorf("reading attached packs: %w", err)
	}
	if len(data) > maxFile {
		return Set{}, s.refuse("it is larger than %d bytes", maxFile)
	}
	return s.parse(data)
}

func (s *Store) check(info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return s.refuse("it is a symbolic link")
	case !info.Mode().IsRegular():
		return s.refuse("it is not a regular file")
	case writableByOthers(info):
		return s.refuse("other users may write to it (mode %#o)", info.Mode().Perm())
	case !ownedByUs(info):
		return s.refuse("it belongs to another user")
	}
	return nil
}

func (s *Store) parse(data []byte) (Set, error) {
	var f file
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Set{}, s.refuse("it is not what was written: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Set{}, s.refuse("it is not what was written: more follows the end")
	}
	if f.Version != version {
		return Set{}, s.refuse("its version is %d, and this program knows %d", f.Version, version)
	}
	for id, e := range f.Attached {
		if id == "" || !filepath.IsAbs(e.Dir) {
			return Set{}, s.refuse("the entry %q has no absolute directory", id)
		}
		if e.Trust != "" && e.Trust != "user" && e.Trust != "untrusted" {
			return Set{}, s.refuse("the entry %q has the unknown trust %q", id, e.Trust)
		}
	}
	return f.Set, nil
}

func (s *Store) refuse(format string, args ...any) error {
	return &RefusedError{s.path, fmt.Sprintf(format, args...)}
}

// Update loads the Set, lets change edit it, and puts the file in its place,
// all under a lock that other processes respect. When change returns an error,
// or the file is refused, nothing is written.
func (s *Store) Update(change func(*Set) error) error {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing attached packs: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock := flock.New(s.path+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, lockRetry); err != nil || !ok {
		return fmt.Errorf("waiting for the lock %q: %w", s.path+".lock", err)
	}
	defer lock.Unlock()

	set, err := s.Load()
	if err != nil {
		return err
	}
	if err := change(&set); err != nil {
		return err
	}
	data, err := json.MarshalIndent(file{version, set}, "", "  ")
	if err != nil {
		return fmt.Errorf("writing attached packs: %w", err)
	}
	// Nothing is written that Load would refuse.
	if _, err := s.parse(data); err != nil {
		return err
	}
	if err := replace(s.path, append(data, '\n')); err != nil {
		return fmt.Errorf("writing attached packs: %w", err)
	}
	return nil
}

// replace puts data in the place of the file, whole or not at all.
func replace(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
