// Package grantfile keeps the grants that hold in every chat and after a
// restart: one file in the state folder, which several servers share, and beside
// it the key that seals it.
//
// The file is for people to read and not to edit: a content that was not written
// here, with that key, is refused whole. The seal finds an edit, a torn write and
// a file from elsewhere. It does not stop a program that runs as the user, outside
// of the sandbox, and reads the key; and an older file that was sealed here is
// taken for the newest. The package does not judge grants, see package gate.
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

// ErrFull is returned by [Store.Update] when there would be more grants than are
// kept, of one person or of all, and none of them is void. A person has to revoke
// some.
var ErrFull = errors.New("too many grants")

// A Store is the file of grants. It is safe for concurrent use, also by several
// processes.
type Store struct {
	file, key private.File
	people    int // each has an equal part; at least 1

	mu   sync.Mutex
	last content // what was read last, while both files look as they did then
}

var _ grants.Store = (*Store)(nil)

// content is what a good file held.
type content struct {
	file, key private.Stamp
	seal      string // under the key that was there
	grants    []grants.Grant
}

// Open returns the Store in the file path; it touches no disk yet. The key is
// beside it, in a file with the ending ".key". Both, and their folder, are made by
// the first Update that keeps something.
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

// Among returns a Store in the same file that gives each of so many people an
// equal part of its room, which nobody can lend or take. Less than 2 is none to
// divide it with. Who has more already, from when they were fewer, keeps that, and
// gets no more.
func (s *Store) Among(people int) *Store {
	return &Store{file: s.file, key: s.key, people: max(1, people)}
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.file.Path }

// Load returns the grants, in the order in which they were given; none when
// there is no file yet. The result is the caller's own. An error means that
// nothing is allowed: a [*private.RefusedError] says what is wrong with the file,
// its key or their folder.
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
	// The key is looked at after the file: it is made first.
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
		c.grants = s.last.grants // the same content, put in place again
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
		// Not err, which could show a part of the key.
		return nil, private.Stamp{}, s.key.Refuse("it is not %d bytes in hexadecimal", keySize)
	}
	return secret, stamp, nil
}

// Update lets change edit the grants and keeps what it returns, whole or not at
// all, while no other process does the same. When they are too many, or too
// large, of one person or together, those of the person, or of all, that have been
// void for longest are forgotten; when that does not help the error is [ErrFull]. With an error nothing changed, unless the disk
// failed in the very last step; then the change holds, and a power failure may
// undo it.
//
// A grant with facts that are not UTF-8 is an error: they would come back as
// other facts, and no call would ever be the same. Elsewhere U+FFFD takes the
// place of what is not.
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
			return nil // there is no file, and nothing to keep
		}
		if problem := invalid(given); problem != "" {
			return fmt.Errorf("writing %s: %s", what, problem)
		}
		// First the key: whoever is killed in between leaves a key and no grants,
		// which is nothing allowed and nothing refused.
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

// makeKey returns the key, and makes it when there is none. The caller has the
// lock.
func (s *Store) makeKey() ([]byte, error) {
	secret, _, err := s.readKey()
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, keySize)
	rand.Read(secret) // never fails
	return secret, s.key.Write([]byte(hex.EncodeToString(secret) + "\n"))
}

// SetAside moves a file that is refused, and its key, to names of their own in
// the same folder, so that the next Load finds no grants. It removes nothing. It
// returns the new paths, none when Load refuses nothing now. What is wrong with
// the folder it cannot mend, and then it returns what Load does.
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
		// First the file: without its key it would be refused once more, and a key
		// alone is nothing.
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
