// Package temp makes folders for temporary files. If the server that made them is
// killed, the next start of a server removes them. It also removes folders that a
// program made hard to remove.
//
// It does not bound their contents.
package temp

import (
	"io/fs"
	"os"
	"path/filepath"
)

// prefix begins the names of the folders. Digits follow.
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
