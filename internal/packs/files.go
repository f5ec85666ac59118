package packs

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// files are where a scan looks: those of the system, or those of a [packfs.Memory].
type files interface {
	Resolve(path string) (string, error) // absolute, symlinks resolved
	Lstat(path string) (fs.FileInfo, error)
	Stat(path string) (fs.FileInfo, error)
	Open(dir string) (*packfs.Dir, error)
}

// onDisk are those of the system.
type onDisk struct{}

func (onDisk) Resolve(path string) (string, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func (onDisk) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
func (onDisk) Stat(path string) (fs.FileInfo, error)  { return os.Stat(path) }
func (onDisk) Open(dir string) (*packfs.Dir, error)   { return packfs.Open(dir) }

func (r *Root) files() files {
	if r.Memory != nil {
		return r.Memory
	}
	return onDisk{}
}
