package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// errMoved is returned when a file is not what was shown.
var errMoved = errors.New("it changed meanwhile, so it was not written; run the command again")

// A record is what one file was before it was changed.
type record struct {
	At      time.Time `json:"at"`
	Client  string    `json:"client"`
	File    string    `json:"file"`
	Path    []string  `json:"path"`             // of the entry
	Before  []byte    `json:"before,omitempty"` // its content, unless it was created
	Created bool      `json:"created,omitempty"`
	Folders []string  `json:"folders,omitempty"` // made for it, the outermost first
	After   string    `json:"after"`             // SHA-256 of what was written
}

// maxRecords is the size of the file of records. The oldest are forgotten first.
const maxRecords = 256 << 20

// history is the file that keeps what the settings were. They may hold secrets.
func history(cfg *config.Config) *private.File {
	return &private.File{Path: filepath.Join(cfg.Paths.State, "setup.json"), What: "what setup changed", Max: maxRecords, Secret: true, Guarded: true}
}

func load(f *private.File) ([]record, error) {
	data, _, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []record
	return all, f.Decode(data, &all)
}

func save(f *private.File, all []record) error {
	for {
		data, err := json.Marshal(all)
		if err != nil {
			return err
		}
		if len(data) <= maxRecords || len(all) < 2 {
			return f.Write(data)
		}
		all = all[1:]
	}
}

// write writes what was shown. What was there is recorded first, so that a file that is
// changed can always be brought back.
func write(cfg *config.Config, c clients.Client, change clients.Change, e edit) error {
	f := history(cfg)
	return f.Lock(func() error {
		all, err := load(f)
		if err != nil {
			return err
		}
		r := record{At: time.Now().UTC(), Client: c.ID, File: e.file, Path: change.Path, Before: e.before, Created: !e.existed, After: digest(e.after)}
		if !e.existed {
			r.Folders = missing(filepath.Dir(e.target))
		}
		if err := save(f, append(all, r)); err != nil {
			return fmt.Errorf("keeping what was there: %w", err)
		}
		if err := replace(e); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", e.file, err), save(f, all))
		}
		return nil
	})
}

// missing are the folders that have to be made for dir.
func missing(dir string) (all []string) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			slices.Reverse(all)
			return all
		}
		all = append(all, dir)
	}
}

// replace writes a file as a whole, if it is still what it was.
func replace(e edit) (err error) {
	dir := filepath.Dir(e.target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(e.target)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, temp.Close(), os.Remove(temp.Name()))
		}
	}()
	if info, statErr := os.Stat(e.target); statErr == nil {
		if err := keepOwner(temp, info); err != nil {
			return err
		}
		if err := temp.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := temp.Write(e.after); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	now, err := read(e.file)
	if err != nil {
		return err
	}
	if now.existed != e.existed || now.target != e.target || !bytes.Equal(now.before, e.before) {
		return errMoved
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), e.target); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
