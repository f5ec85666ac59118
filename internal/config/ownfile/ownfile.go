// Package ownfile reads the configuration file, if only its user can have written it: who
// writes it decides which packs are trusted.
//
// It does not understand the file. Who can read it is not its subject either; package
// config warns about that.
package ownfile

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/config/units"
)

// maxSize bounds the file.
const maxSize = 1 << 20

// Read reads the file at path, which may be a link, or returns what is wrong with it.
func Read(path string) (data []byte, wrong string) {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "there is no such file"
	case err != nil:
		return nil, cause(err)
	case fi.IsDir():
		return nil, "is a folder; name a file"
	case !fi.Mode().IsRegular():
		return nil, "is not a regular file"
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close() // only read from
	if fi, err = f.Stat(); err != nil {
		return nil, cause(err)
	}
	if wrong := notOurs(fi); wrong != "" {
		return nil, wrong
	}
	data, err = io.ReadAll(io.LimitReader(f, maxSize+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case len(data) > maxSize:
		return nil, "is larger than " + units.SizeText(maxSize)
	}
	return data, ""
}

// cause returns err without the path, which the message already has.
func cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
