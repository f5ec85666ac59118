package store

import (
	"io/fs"
	"os"
)

// many is how many files are made durable one by one. More of them wait for everything
// on their file system at once, where that can be done.
const many = 64

// openDisk opens the folder of the packs, where that is of use, unless it is open. The system reports to an
// open file only what failed after it was opened, so this comes before the first byte
// is staged.
func (s *Store) openDisk() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disk == nil && late {
		s.disk, err = os.Open(s.Dir)
	}
	return err
}

// settle makes staged packs durable.
func (s *Store) settle(all []Arrival) error {
	files := 0
	for _, a := range all {
		files += len(a.Pack.Tree.Files)
	}
	if files > many {
		if done, err := s.syncDisk(); done || err != nil {
			return err
		}
	}
	for _, a := range all {
		if err := syncTree(a.Pack.Dir); err != nil {
			return err
		}
	}
	return nil
}

// syncDisk makes everything on the file system of the packs durable. It reports false
// where it cannot, or where a failure could go unnoticed.
func (s *Store) syncDisk() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disk == nil { // nothing was staged here
		return false, nil
	}
	return syncAll(s.disk)
}

// syncTree makes the names below a folder durable, and the files if their stage did not.
func syncTree(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && (!late || !d.Type().IsRegular()) {
			return err
		}
		return syncIn(root, p)
	})
}
