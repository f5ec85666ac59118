package packfs

import (
	"io/fs"
	"path/filepath"
)

// OpenFile opens a directory as if it held nothing but the one regular file
// that file names: what is beside it can neither be read nor listed, is not in
// the digest, and the file is not read through a symlink.
func OpenFile(file string) (*Dir, error) {
	d, err := Open(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	d.only = filepath.Base(file)
	return d, nil
}

// hides says why a cleaned name cannot be read in a directory that is narrowed
// to one file; nil when it can.
func (d *Dir) hides(clean string) error {
	switch {
	case d.only == "" || clean == ".":
		return nil
	case clean != d.only:
		return ErrNotFound
	}
	info, err := d.root.Lstat(d.only)
	if err != nil {
		return reason(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return ErrNotRegular
	}
	return nil
}
