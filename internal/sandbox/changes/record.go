package changes

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// A phase is how far a set has come. Each is on disk before what follows it is
// done.
type phase string

const (
	// staging: content is being written beside the folder's own files. Nothing of
	// the set counts, and recovery removes it.
	staging phase = "staging"
	// committed: everything that the set needs is on disk. Recovery carries it out.
	committed phase = "committed"
	// decided: it was carried out, and what became of each change is known.
	// Recovery clears up.
	decided phase = "decided"
	settled phase = "settled"
)

// An op is a change with what is needed to carry it out, to show it and to
// take it back.
type op struct {
	Change
	// Slot names its content in the stage, in the set's folder of new content, and
	// in that of old content.
	Slot string `json:"slot"`
	// Was is what the folder has at the path; nil: nothing.
	Was      *tree.Meta `json:"was,omitempty"`
	WasLink  string     `json:"was_link,omitempty"`
	WasAttrs tree.Attrs `json:"was_attrs,omitempty"`
	// Meta and Attrs are what the path is to have: permissions, time and attributes
	// count.
	Meta  tree.Meta  `json:"meta"`
	Attrs tree.Attrs `json:"attrs,omitempty"`
	// Staged is the inode of what lies in the stage.
	Staged uint64 `json:"staged,omitempty"`
	// Now is what the path had when the op was carried out; nil: unknown.
	Now *tree.Meta `json:"now,omitempty"`
	// Git is set for what is carried out all or not at all, and Internal for what
	// is in no list: the objects and the index behind a KindGit.
	Git      bool `json:"git,omitempty"`
	Internal bool `json:"internal,omitempty"`
	// By is the set with which a person applied or took back the op.
	By string `json:"by,omitempty"`
	// HasNew and HasOld say that the store keeps content under Slot.
	HasNew bool `json:"has_new,omitempty"`
	HasOld bool `json:"has_old,omitempty"`
	// Strings that are not UTF-8, which JSON cannot carry.
	RawPath []byte `json:"raw_path,omitempty"`
	RawLink []byte `json:"raw_link,omitempty"`
	RawWas  []byte `json:"raw_was,omitempty"`

	open func() (*os.File, error) // :: the content of a regular file that is not staged yet
	data []byte                   // the same, where it was made and not read; then open is nil
}

// regular reports whether the op brings the content of a regular file.
func (o *op) regular() bool {
	return o.Kind == KindCreate || o.Kind == KindReplace || o.Kind == KindGit
}

// makes reports whether the op gives a name to something new, which is staged.
func (o *op) makes() bool { return o.regular() || o.Kind == KindSymlink || o.Kind == KindMkdir }

// A record is a set as it is on disk.
type record struct {
	Set
	Phase phase    `json:"phase"`
	Stage string   `json:"stage"` // name of the folder in Folder where content is staged
	Dev   uint64   `json:"dev"`   // of Folder
	Ino   uint64   `json:"ino"`
	Locks []string `json:"locks,omitempty"` // lock files of git's in Folder
	Ops   []op     `json:"ops"`             // the last field: see loadHead
}

const (
	recordName = "set.json"
	newName    = "new"
	oldName    = "old"
	endMark    = "\nend sha256:"
	maxRecord  = 512 << 20
)

// list fills in the changes that are shown.
func (r *record) list() *Set {
	set := r.Set
	set.Changes = nil
	for i := range r.Ops {
		if !r.Ops[i].Internal {
			set.Changes = append(set.Changes, r.Ops[i].Change)
		}
	}
	return &set
}

// encode returns the bytes of a record, which end in a mark with their digest.
func (r *record) encode() ([]byte, error) {
	for i := range r.Ops {
		o := &r.Ops[i]
		o.RawPath, o.RawLink, o.RawWas = raw(o.Path), raw(o.Link), raw(o.WasLink)
	}
	changes := r.Changes
	r.Changes = nil // the ops have them
	data, err := json.Marshal(r)
	r.Changes = changes
	return fmt.Appendf(data, "%s%x\n", endMark, sha256.Sum256(data)), err
}

func raw(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}

func decode(data []byte) (*record, error) {
	at := bytes.LastIndex(data, []byte(endMark))
	if at < 0 || string(data[at:]) != fmt.Sprintf("%s%x\n", endMark, sha256.Sum256(data[:at])) {
		return nil, errors.New("it has no end mark")
	}
	r := &record{}
	if err := json.Unmarshal(data[:at], r); err != nil {
		return nil, err
	}
	for i := range r.Ops {
		o := &r.Ops[i]
		for _, s := range []struct {
			to  *string
			raw []byte
		}{{&o.Path, o.RawPath}, {&o.Link, o.RawLink}, {&o.WasLink, o.RawWas}} {
			if s.raw != nil {
				*s.to = string(s.raw)
			}
		}
		if !tree.Valid(o.Path) || o.Slot != strconv.Itoa(i) {
			return nil, fmt.Errorf("its change %d is not one", i)
		}
	}
	return r, nil
}

func (s *Store) dir(id string) string { return filepath.Join(s.sets, id) }

// save puts the record on disk, whole or not at all.
func (s *Store) save(r *record) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	dir := s.dir(r.ID)
	next := filepath.Join(dir, recordName+".new")
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && r.Phase != settled { // of a settled one, nothing more is to be done
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(dir, recordName)); err != nil || r.Phase == settled {
		return err
	}
	return syncDir(dir)
}

func (s *Store) load(id string) (*record, error) {
	name := filepath.Join(s.dir(id), recordName)
	if info, err := os.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return nil, fmt.Errorf("change set %q: its record is not a file of this program", id)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := decode(data)
	if err != nil || r.ID != id {
		return nil, fmt.Errorf("change set %q is damaged: %w", id, errors.Join(err))
	}
	return r, nil
}

// loadHead returns a record without its ops, whose number does not matter here.
// It does not look whether the record is whole.
func (s *Store) loadHead(id string) (*record, error) {
	f, err := os.Open(filepath.Join(s.dir(id), recordName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, maxRecord))
	_, err = d.Token() // the bracket
	fields := map[string]json.RawMessage{}
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil || key == "ops" { // the last one, see record
			break
		}
		var value json.RawMessage
		err = d.Decode(&value)
		fields[fmt.Sprint(key)] = value
	}
	r := &record{}
	if err == nil {
		var data []byte
		if data, err = json.Marshal(fields); err == nil {
			err = json.Unmarshal(data, r)
		}
	}
	if err != nil || r.ID != id {
		return nil, fmt.Errorf("change set %q is damaged: %w", id, errors.Join(err))
	}
	return r, nil
}

func syncDir(dir string) error {
	d, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// split returns the folder and the name of a path; the folder may be "".
func split(p string) (dir, name string) {
	dir, name = path.Split(p)
	return path.Clean("./" + dir), name
}
