// Package userfile opens files that belong to the user: an archive, a key, a list of
// logins. It follows links, since the user made them, and does not block on a pipe in
// place of a file.
//
// It does not check the files' owners or who else can write to them.
package userfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Open opens a regular file for reading.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns the bytes of a regular file. More than max bytes are an error.
func Read(name string, max int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(data)) > max {
		return nil, fmt.Errorf("it has more than %d bytes", max)
	}
	return data, err
}
