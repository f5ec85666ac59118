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
	return write(root, name, data, true)
}

// write replaces a file atomically. If waits is false, the caller makes it durable.
func write(root *os.Root, name string, data []byte, waits bool) error {
	next := name + ".new"
	if err := removeIn(root, next); err != nil {
		return err
	}
	f, err := root.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
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
	if err := f.Close(); err != nil {
		return err
	}
	if err := root.Rename(next, name); err != nil {
		return err
	}
	if !waits {
		return nil
	}
	return syncIn(root, filepath.Dir(name))
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
