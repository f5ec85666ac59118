package packfs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// System has the files of the operating system, with the methods of a [Memory].
type System struct{}

// Resolve returns the absolute path, with symlinks resolved.
func (System) Resolve(path string) (string, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// Lstat is os.Lstat.
func (System) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

// Stat is os.Stat.
func (System) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// Open is [Open].
func (System) Open(dir string) (*Dir, error) { return Open(dir) }
