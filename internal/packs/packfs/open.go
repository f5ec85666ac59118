package packfs

import "os"

// OpenFile opens a regular file for reading, by the rules of [Dir.Read]. The
// caller closes it; it stays open when the directory is closed.
func (d *Dir) OpenFile(name string) (*os.File, error) {
	f, _, err := d.file(name)
	return f, err
}
