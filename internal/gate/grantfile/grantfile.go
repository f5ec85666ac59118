// Package grantfile keeps the grants that hold in every chat and after a
// restart: one file in the state folder, which several servers share, and beside
// it the key that seals it.
//
// The file is for people to read and not to edit: if its content was not written
// here, with that key, all of it is refused. The seal detects an edit, a torn write
// and a file from elsewhere. It does not stop a program that runs as the user, outside
// of the sandbox, and reads the key. An older file that was sealed here is taken for
// the newest. The package does not judge grants; see package gate.
package grantfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

const (
	what      = "kept grants"
	maxGrants = 2000
	maxFile   = 16 << 20 // 16 MiB
	keySize   = 32       // bytes
)

// ErrFull is returned by [Store.Update] if there would be more grants than can be
// kept, of one person or of all, and none of them is void. A person has to revoke
// some.
var ErrFull = errors.New("too many grants")

// A Store is the file of grants. It is safe for concurrent use, also by several
// processes.
type Store struct {
	file, key private.File
	people    int // how many share the room equally; at least 1

	mu   sync.Mutex
	last content // what was last read; valid while both files are unchanged
}

var _ grants.Store = (*Store)(nil)

// content is what a valid file held.
type content struct {
	file, key private.Stamp
	seal      string // made with the key of that time
	grants    []grants.Grant
}

// Open returns the Store in the file path. It does not touch the disk. The key is in a
// file beside it with the suffix ".key". The first Update that stores something creates
// both, and their folder.
func Open(path string) *Store {
	return &Store{
		file: private.File{Path: path, What: what, Max: maxFile, Guarded: true},
		key: private.File{
			Path: strings.TrimSuffix(path, filepath.Ext(path)) + ".key", What: "the key of " + what,
			Max: 2*keySize + 1, Secret: true,
		},
		people: 1,
	}
}

// Among returns a Store for the same file that divides its room equally among this
// many people, who cannot lend or take room. With fewer than 2 the room is not
// divided. A person who already has more, from when there were fewer people, keeps it
// but cannot add.
func (s *Store) Among(people int) *Store {
	return &Store{file: s.file, key: s.key, people: max(1, people)}
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.file.Path }

// Load returns the grants, in the order in which they were given, or none if there is
// no file yet. The result is the caller's own copy. An error means that nothing is
// allowed: a [*private.RefusedError] says what is wrong with the file, its key or
// their folder.
//
// It is cheap as long as the file does not change.
func (s *Store) Load() ([]grants.Grant, error) {
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	return clone(c.grants), nil
}

// load returns what the file holds now. What it returns is shared.
func (s *Store) load() (content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.read()
	if err != nil {
		s.last = content{}
		return content{}, err
	}
	s.last = c
	return c, nil
}

func (s *Store) read() (content, error) {
	now, err := s.file.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, nil
	}
	if err != nil {
		return content{}, err
	}
	// Look at the key after the file, since the key is made first.
	key, err := s.key.Stat()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return content{}, err
	}
	if s.last.file.Holds(now) && s.last.key.Holds(key) {
		return s.last, nil
	}
	var c content
	var data, secret []byte
	if data, c.file, err = s.file.Read(); errors.Is(err, fs.ErrNotExist) {
		return content{}, nil
	}
	if err != nil {
		return content{}, err
	}
	if secret, c.key, err = s.readKey(); errors.Is(err, fs.ErrNotExist) {
		return content{}, s.file.Refuse("its key %q is missing", s.key.Path)
	}
	if err != nil {
		return content{}, err
	}
	if c.seal, err = s.checkSeal(secret, data); err != nil {
		return content{}, err
	}
	if c.seal == s.last.seal {
		c.grants = s.last.grants // the same content, written again
		return c, nil
	}
	c.grants, err = s.parse(data)
	return c, err
}

func (s *Store) readKey() ([]byte, private.Stamp, error) {
	data, stamp, err := s.key.Read()
	if err != nil {
		return nil, private.Stamp{}, err
	}
	secret, err := hex.DecodeString(strings.TrimSuffix(string(data), "\n"))
	if err != nil || len(secret) != keySize {
		// Leave out err, which could show a part of the key.
		return nil, private.Stamp{}, s.key.Refuse("it is not %d bytes in hexadecimal", keySize)
	}
	return secret, stamp, nil
}

// Update lets change edit the grants and stores what it returns, completely or not at
// all. No other process updates them meanwhile. If there are too many grants, or they
// are too large, of one person or together, the void ones of that person or of all
// are dropped, longest void first. If that does not help, the error is [ErrFull]. If
// there is an error, nothing changed, unless the disk failed in the very last step;
// then the change holds, and a power failure may undo it.
//
// It is an error if a grant has facts that are not UTF-8: they would come back as
// other facts, and no call would ever match. In other texts, U+FFFD replaces what is
// not UTF-8.
func (s *Store) Update(change func([]grants.Grant) ([]grants.Grant, error)) error {
	return s.file.Lock(func() error {
		old, err := s.load()
		if err != nil {
			return err
		}
		given, err := change(clone(old.grants))
		if err != nil {
			return err
		}
		if len(given) == 0 && old.seal == "" {
			return nil // there is no file, and nothing to store
		}
		if problem := invalid(given); problem != "" {
			return fmt.Errorf("writing %s: %s", what, problem)
		}
		// Write the key first: a process that is killed in between leaves a key and
		// no grants, so nothing is allowed and nothing is refused.
		secret, err := s.makeKey()
		if err != nil {
			return err
		}
		data, seal, err := encode(secret, given, old.grants, s.people)
		if err != nil {
			return err
		}
		if seal == old.seal {
			return nil
		}
		return s.file.Write(data)
	})
}

// makeKey returns the key, and makes it if there is none. The caller holds the lock.
func (s *Store) makeKey() ([]byte, error) {
	secret, _, err := s.readKey()
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, keySize)
	rand.Read(secret) // never fails
	return secret, s.key.Write([]byte(hex.EncodeToString(secret) + "\n"))
}

// SetAside renames a file that is refused, and its key, in the same folder, so that
// the next Load finds no grants. It removes nothing. It returns the new paths, or none
// if Load refuses nothing now. It cannot repair the folder itself, and then returns
// the error of Load.
func (s *Store) SetAside(now time.Time) (moved []string, err error) {
	err = s.file.Lock(func() error {
		_, err := s.load()
		if _, refused := errors.AsType[*private.RefusedError](err); !refused {
			return err
		}
		ending := ".refused-" + now.UTC().Format("20060102T150405Z")
		for n := 2; exists(s.file.Path+ending) || exists(s.key.Path+ending); n++ {
			ending = fmt.Sprintf(".refused-%s-%d", now.UTC().Format("20060102T150405Z"), n)
		}
		// Move the file first: without its key it would be refused again, while a key
		// alone does no harm.
		for _, path := range []string{s.file.Path, s.key.Path} {
			if !exists(path) {
				continue
			}
			if err := os.Rename(path, path+ending); err != nil {
				return fmt.Errorf("moving %s aside: %w", what, err)
			}
			moved = append(moved, path+ending)
		}
		return s.file.Sync()
	})
	return moved, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
