// Package temp makes folders for temporary files that the next start of a server
// removes when the one that made them was killed, and removes folders that a
// program tried to keep.
//
// It does not bound what is put in them.
package temp

import (
	"io/fs"
	"os"
	"path/filepath"
)

// prefix is how the names of the folders begin. Digits follow.
const prefix = "packs-run-"

// removeFolder removes a folder, even if a program removed our rights to parts of it.
func removeFolder(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	if info, lerr := os.Lstat(dir); lerr == nil && info.IsDir() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700) // RemoveAll reports what is left
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	return err
}
