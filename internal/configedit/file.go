package configedit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxFile is the largest file that is read: some programs keep their history in
// their settings.
const maxFile = 64 << 20

// ErrMoved is returned by [File.Replace] for a file that has changed.
var ErrMoved = errors.New("it changed meanwhile, so it was not written; run the command again")

// A File is the state of a file when it was read.
type File struct {
	Path   string // as it was named
	Target string // the file that Path leads to
	Text   []byte
	Exists bool
}

// Read returns a file, or an empty File if there is none yet. It follows links. A
// link that leads nowhere, or to something other than a regular file, is an error.
func Read(path string) (*File, error) {
	f := &File{Path: path, Target: path}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s is a link to a file that does not exist", path)
		}
		f.Target, err = madeAt(path)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be made: %w", path, err)
		}
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	f.Target, f.Exists = target, true
	// Opening a special file could block.
	info, err := os.Stat(target)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(target)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	defer file.Close()
	f.Text, err = io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	if len(f.Text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return f, nil
}

// madeAt returns where a file made at path would be, following links to folders.
func madeAt(path string) (string, error) {
	dir, missing := filepath.Dir(path), filepath.Base(path)
	for {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			real, err := filepath.EvalSymlinks(dir)
			return filepath.Join(real, missing), err
		}
		dir, missing = filepath.Dir(dir), filepath.Join(filepath.Base(dir), missing)
	}
}

// MissingFolders returns the folders that Replace will make, outermost first.
func (f *File) MissingFolders() (all []string) {
	for dir := filepath.Dir(f.Target); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			slices.Reverse(all)
			return all
		}
		all = append(all, dir)
	}
}

// Replace atomically replaces the file's content with text, keeping its mode and
// owner. If the file has changed since it was read, it returns [ErrMoved].
func (f *File) Replace(text []byte) (err error) {
	dir := filepath.Dir(f.Target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(f.Target)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = temp.Close() // it may be closed already
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	if info, statErr := os.Stat(f.Target); statErr == nil {
		if err := keepOwner(temp, info); err != nil {
			return err
		}
		if err := temp.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := temp.Write(text); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	now, err := Read(f.Path)
	if err != nil {
		return err
	}
	if now.Exists != f.Exists || now.Target != f.Target || !bytes.Equal(now.Text, f.Text) {
		return ErrMoved
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.Target)
}
