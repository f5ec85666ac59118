package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// A record is one change of one file.
type record struct {
	At     time.Time `json:"at"`
	Client string    `json:"client"`
	File   string    `json:"file"`
	Target string    `json:"target,omitempty"` // where File led; this file was written
	Place  string    `json:"place,omitempty"`  // File, with the links to its folder resolved, but not File itself
	Path   []string  `json:"path"`             // of the value that was changed
	// Word was added to the list at Path; or Value was written at Path, in place of
	// Old if there was something.
	Word    string          `json:"word,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
	Old     json.RawMessage `json:"old,omitempty"`
	Before  []byte          `json:"before,omitempty"` // the whole content, unless setup created the file
	Created bool            `json:"created,omitempty"`
	Folders []string        `json:"folders,omitempty"` // folders created for it, the outermost first
	After   string          `json:"after"`             // SHA-256 of what was written
}

// maxRecords is the largest size of the file of records. The oldest are dropped
// first.
const maxRecords = 256 << 20

// history returns the file that keeps the previous settings. They may hold secrets.
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

// write writes what was shown. It first records what was there, so that every change
// can be undone.
func write(cfg *config.Config, c clients.Client, e edit) error {
	f := history(cfg)
	return f.Lock(func() error {
		all, err := load(f)
		if err != nil {
			return err
		}
		r, err := e.record(c)
		if err != nil {
			return err
		}
		if err := save(f, append(slices.Clip(all), r)); err != nil {
			return fmt.Errorf("keeping what was there: %w", err)
		}
		if err := e.Replace(e.after); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", e.Path, err), save(f, all))
		}
		return nil
	})
}

// record returns what undo needs to know about the edit.
func (e edit) record(c clients.Client) (record, error) {
	r := record{
		At: time.Now().UTC(), Client: c.ID, File: e.Path, Target: e.Target, Path: e.change.Path, Word: e.change.Word,
		Before: e.Text, Created: !e.Exists, After: digest(e.after),
	}
	r.Place = r.Target
	if !e.Exists {
		r.Folders = e.MissingFolders()
	} else {
		dir, err := filepath.EvalSymlinks(filepath.Dir(e.Path))
		if err != nil {
			return record{}, err
		}
		r.Place = filepath.Join(dir, filepath.Base(e.Path))
	}
	if r.Word != "" {
		return r, nil
	}
	var err, errOld error
	r.Value, err = valueAt(e.change.Format, e.after, r.Path)
	r.Old, errOld = valueAt(e.change.Format, e.Text, r.Path)
	return r, errors.Join(err, errOld)
}

// valueAt returns the value at path as JSON; nil if there is none.
func valueAt(format *configedit.Format, text []byte, path []string) (json.RawMessage, error) {
	value, ok, err := format.Get(text, path...)
	if err != nil || !ok {
		return nil, err
	}
	return json.Marshal(value)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
