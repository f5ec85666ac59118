package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// readFile reads a file that may come from a hostile project: no link, no pipe, at
// most max bytes.
func readFile(path string, max int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("it has more than %d bytes", max)
	}
	return data, err
}

// writeFile replaces a file atomically, and waits for the disk.
func writeFile(path string, data []byte) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	return writeIn(root, filepath.Base(path), data)
}

// writeIn is writeFile below a folder.
func writeIn(root *os.Root, name string, data []byte) error {
	next := name + ".new"
	if err := removeIn(root, next); err != nil {
		return err
	}
	if err := create(root, next, data, true); err != nil {
		return err
	}
	if err := root.Rename(next, name); err != nil {
		return err
	}
	return syncIn(root, filepath.Dir(name))
}

// create makes a file that is not there. With waits, its bytes are durable; its name is
// not.
func create(root *os.Root, name string, data []byte, waits bool) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if waits {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// hold makes a file of some size, for which the disk has room. If it has not, no file is
// left.
func hold(root *os.Root, name string, size int64) (err error) {
	if err := removeIn(root, name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	done, err := allocate(f, size)
	if err == nil && !done {
		if _, err = f.Write(make([]byte, size)); err == nil {
			err = f.Sync()
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, removeIn(root, name))
	}
	return err
}

// removeIn removes a file, if it exists.
func removeIn(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncIn makes a file, or new names in a folder, durable where the system supports that.
func syncIn(root *os.Root, name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// removeFile removes a file, if it exists.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
