package seatbelt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// RealProtected returns the paths that a rule must name so that what is at
// paths stays as it is: where each would be found, whether it is there or not,
// and where a link there leads to.
func RealProtected(paths []string, realPath func(string) (string, error)) ([]string, error) {
	var all []string
	add := func(path string) {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	for _, path := range paths {
		path = filepath.Clean(path)
		info, err := os.Lstat(path)
		if err == nil {
			r, err := realPath(path) // a link may lead nowhere, or in a circle
			if err == nil {
				add(r)
			}
			if err == nil && info.Mode()&fs.ModeSymlink == 0 {
				continue
			}
		}
		// The nearest folder that is there, and what is missing below it.
		for dir, rest := filepath.Dir(path), filepath.Base(path); ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
			r, err := realPath(dir)
			if err == nil {
				add(filepath.Join(r, rest))
				break
			}
			if dir == filepath.Dir(dir) || !errors.Is(err, fs.ErrNotExist) {
				return nil, &fs.PathError{Op: "looking up", Path: dir, Err: err}
			}
		}
	}
	return all, nil
}
