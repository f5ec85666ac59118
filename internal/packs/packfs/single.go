package packfs

import (
	"io/fs"
	"path/filepath"
)

// OpenFile opens a directory as if it contained only the regular file named file. The
// directory's other files can be neither read nor listed and are not in the digest. The
// file is not read through a symlink.
func OpenFile(file string) (*Dir, error) {
	d, err := Open(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	d.only = filepath.Base(file)
	return d, nil
}

// hides returns why a cleaned name cannot be read in a directory restricted to one file;
// nil if it can.
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
