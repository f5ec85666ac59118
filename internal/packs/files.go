package packs

import (
	"io/fs"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// files are where a scan looks: [packfs.System], or a [packfs.Memory].
type files interface {
	Resolve(path string) (string, error) // absolute, symlinks resolved
	Lstat(path string) (fs.FileInfo, error)
	Stat(path string) (fs.FileInfo, error)
	Open(dir string) (*packfs.Dir, error)
}

func (r *Root) files() files {
	if r.Memory != nil {
		return r.Memory
	}
	return packfs.System{}
}
