package packfs

import "os"

// OpenFile opens a regular file for reading, by the rules of [Dir.Read]. The caller closes
// it; it stays open if the directory is closed.
func (d *Dir) OpenFile(name string) (*os.File, error) {
	if _, err := d.disk(); err != nil {
		return nil, err
	}
	f, _, err := d.file(name)
	if err != nil {
		return nil, err
	}
	return f.(*os.File), nil
}
