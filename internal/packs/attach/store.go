package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/packs-mcp/packs-mcp/internal/private"
)

// A RefusedError says why a state file was not used. Its content is ignored, and it
// is not overwritten: a person has to look at it.
type RefusedError = private.RefusedError

const (
	version = 1
	maxFile = 4 << 20 // 4 MiB, some twenty thousand packs
)

// file is the shape of the state file.
type file struct {
	Version int `json:"version"`
	Set
}

// A Store is the state file. Safe for concurrent use, also by several
// processes.
type Store struct{ file private.File }

// Open returns the Store in the file path. It does not touch the disk: the first
// Update creates the file and its directory.
func Open(path string) *Store {
	return &Store{private.File{Path: path, What: "attached packs", Max: maxFile}}
}

// Path returns the path of the state file.
func (s *Store) Path() string { return s.file.Path }

// Load returns the stored Set, empty if there is none yet. The error is a
// [*RefusedError] if the file is a symlink, can be written by others, belongs to
// another user or does not parse. With an error, the Set is empty.
func (s *Store) Load() (Set, error) {
	data, _, err := s.file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, nil
	}
	if err != nil {
		return Set{}, err
	}
	return s.parse(data)
}

func (s *Store) parse(data []byte) (Set, error) {
	var f file
	if err := s.file.CheckVersion(data, version); err != nil {
		return Set{}, err
	}
	if err := s.file.Decode(data, &f); err != nil {
		return Set{}, err
	}
	for id, e := range f.Attached {
		if id == "" || !filepath.IsAbs(e.Dir) {
			return Set{}, s.file.Refuse("the entry %q has no absolute directory", id)
		}
		if e.Trust != "" && e.Trust != "user" && e.Trust != "untrusted" {
			return Set{}, s.file.Refuse("the entry %q has the unknown trust %q", id, e.Trust)
		}
	}
	return f.Set, nil
}

// Update loads the Set, lets change edit it, and replaces the file, all under a lock
// that other processes respect. If change returns an error or the file is refused,
// nothing is written.
func (s *Store) Update(change func(*Set) error) error {
	return s.file.Lock(func() error {
		set, err := s.Load()
		if err != nil {
			return err
		}
		if err := change(&set); err != nil {
			return err
		}
		data, err := json.MarshalIndent(file{version, set}, "", "  ")
		if err != nil {
			return fmt.Errorf("writing attached packs: %w", err)
		}
		// Never write what Load would refuse.
		if _, err := s.parse(data); err != nil {
			return err
		}
		return s.file.Write(append(data, '\n'))
	})
}
