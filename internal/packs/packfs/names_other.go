//go:build !linux

package packfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
)

// readNames returns at most limit entries of an open directory for which keep returns
// true.
func readNames(_ *os.Root, f *os.File, limit int, keep func(string, fs.FileMode) bool) (entries []fs.DirEntry, truncated bool, err error) {
	entries, err = f.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if truncated = len(entries) > limit; truncated {
		entries = entries[:limit]
	}
	if keep != nil {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !keep(e.Name(), e.Type()) })
	}
	return entries, truncated, nil
}
