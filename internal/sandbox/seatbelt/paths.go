package seatbelt

import (
	"errors"
	"io/fs"
	"slices"
)

// Real returns paths as realPath spells them, each once, without those that do
// not exist.
func Real(paths []string, realPath func(string) (string, error)) ([]string, error) {
	var all []string
	for _, path := range paths {
		switch r, err := realPath(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, &fs.PathError{Op: "looking up", Path: path, Err: err}
		case !slices.Contains(all, r):
			all = append(all, r)
		}
	}
	return all, nil
}
