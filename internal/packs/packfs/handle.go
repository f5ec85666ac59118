package packfs

import (
	"io"
	"io/fs"
	"os"
)

// A handle is an open folder that no path leads out of: one of the system, or of a
// [Memory].
type handle interface {
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	open(name string) (file, error)
	sub(name string) (handle, error)
	// names returns the entries of the folder itself, in any order; see [Dir.NamesOf].
	names(limit int, keep func(string, fs.FileMode) bool) (entries []fs.DirEntry, truncated bool, err error)
	Close() error
}

// A file is an open file.
type file interface {
	io.ReadCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// onDisk is a folder of the file system.
type onDisk struct{ *os.Root }

func (d onDisk) open(name string) (file, error) {
	f, err := d.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d onDisk) sub(name string) (handle, error) {
	root, err := d.OpenRoot(name)
	return onDisk{root}, err
}

func (d onDisk) names(limit int, keep func(string, fs.FileMode) bool) ([]fs.DirEntry, bool, error) {
	f, err := d.OpenFile(".", os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	return readNames(d.Root, f, limit, keep)
}

// disk returns the folder of the file system. Only such folders are listed, copied and
// digested; the contents of a [Memory] were digested when they were read.
func (d *Dir) disk() (*os.Root, error) {
	if at, ok := d.root.(onDisk); ok {
		return at.Root, nil
	}
	return nil, &PathError{".", errInMemory}
}
