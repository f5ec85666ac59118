package store

import (
	"io/fs"
	"os"
)

// many is how many files are synced one by one. For more, the whole file system is
// synced at once, where possible.
const many = 64

// openDisk opens the folder of the packs if it is needed and not open. The system reports only
// failures after a file was opened, so call this before the first byte is staged.
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

// syncDisk makes everything on the file system of the packs durable. It returns false
// if it cannot, or if a failure could go unnoticed.
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
