package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
)

// Split returns the folder and the name of a path as [Valid] describes it.
// The folder of a single name is ".".
func Split(p string) (dir, name string) {
	dir, name = path.Split(p)
	return path.Clean("./" + dir), name
}

// ReadAt opens the regular file at a path below the folder.
func (d *Dir) ReadAt(at string) (*os.File, error) {
	dir, name := Split(at)
	below, err := d.Walk(dir)
	if err != nil {
		return nil, err
	}
	defer below.Close()
	return below.Read(name)
}

// ReadAll returns the content of the file that open opens, which must not be
// longer than limit.
func ReadAll(limit int64, open func() (*os.File, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(data)) > limit {
		err = fmt.Errorf("it is longer than %d bytes", limit)
	}
	return data, err
}

// IgnoreMissing returns err, or nil if it says that a name does not exist.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Private makes a folder that only the user may enter, or checks that it is one.
func Private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%q is not a folder that only you may use (mode %#o): change its mode to 0700", dir, info.Mode().Perm())
	}
	return nil
}
