package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// A Phase is how far a set has come. Each phase is on disk before the next one begins.
type Phase string

const (
	// Staging: content is being written beside the folder's own files. Nothing of
	// the set counts, and recovery removes it.
	Staging Phase = "staging"
	// Committed: everything that the set needs is on disk. Recovery carries it out.
	Committed Phase = "committed"
	// Decided: it was carried out, and the outcome of each change is known. Recovery
	// cleans up.
	Decided Phase = "decided"
	// Settled: there is nothing more to do.
	Settled Phase = "settled"
)

// An Op is a change with the data to carry it out, show it and undo it.
type Op struct {
	Change
	// Slot names its content in the stage, in the set's folder of new content, and
	// in that of old content.
	Slot string `json:"slot"`
	// Was describes the existing file at the path; nil: none.
	Was      *tree.Meta `json:"was,omitempty"`
	WasLink  string     `json:"was_link,omitempty"`
	WasAttrs tree.Attrs `json:"was_attrs,omitempty"`
	// Meta and Attrs describe the new file: its permissions, time and attributes.
	Meta  tree.Meta  `json:"meta"`
	Attrs tree.Attrs `json:"attrs,omitempty"`
	// Staged is the inode of the file in the stage.
	Staged uint64 `json:"staged,omitempty"`
	// Now describes the file at the path after the op was carried out; nil: unknown.
	Now *tree.Meta `json:"now,omitempty"`
	// Git is set for ops that are carried out all together or not at all, and Internal
	// for ops that are not listed: the objects and the index behind a KindGit.
	Git      bool `json:"git,omitempty"`
	Internal bool `json:"internal,omitempty"`
	// Files lists what a KindGit changes, as "A ", "M " or "D " and a path. MoreFiles is
	// the number of others.
	Files     []string `json:"files,omitempty"`
	MoreFiles int      `json:"more_files,omitempty"`
	// HasNew and HasOld say that the store keeps content under Slot.
	HasNew bool `json:"has_new,omitempty"`
	HasOld bool `json:"has_old,omitempty"`
	// Strings that are not UTF-8, which JSON cannot carry.
	RawPath []byte `json:"raw_path,omitempty"`
	RawLink []byte `json:"raw_link,omitempty"`
	RawWas  []byte `json:"raw_was,omitempty"`

	// Open opens the content of a regular file that is not staged yet. For generated
	// content, Open is nil and Data has it.
	Open func() (*os.File, error) `json:"-"`
	Data []byte                   `json:"-"`
}

// maxHashed is the largest user file that is hashed.
const maxHashed = 4 << 30

// Regular reports whether the op has the content of a regular file.
func (o *Op) Regular() bool {
	return o.Kind == KindCreate || o.Kind == KindReplace || o.Kind == KindGit
}

// Makes reports whether the op puts something new, which is staged, at its path.
func (o *Op) Makes() bool { return o.Regular() || o.Kind == KindSymlink || o.Kind == KindMkdir }

// Replaces reports whether the op was applied and replaced a regular file, which is
// needed to undo it.
func (o *Op) Replaces() bool {
	return o.State == Applied && o.Was != nil && o.Was.IsFile() && o.Kind != KindMeta
}

// IsIndex reports whether the op replaces git's index for commits that a run made.
func (o *Op) IsIndex() bool { return o.Git && o.Internal && path.Base(o.Path) == "index" }

// Found records the file that the op will change. A file that cannot be read is recorded
// without a digest.
func (o *Op) Found(d *tree.Dir, name string, m *tree.Meta) error {
	o.Old, o.WasLink, o.WasAttrs = "", "", nil
	switch {
	case m.IsLink():
		target, err := d.Readlink(name)
		o.WasLink = target
		return tree.IgnoreMissing(err)
	case m.IsDir():
		sub, err := d.Sub(name)
		if err != nil {
			return tree.IgnoreMissing(err)
		}
		defer sub.Close()
		o.WasAttrs, err = tree.ReadAttrs(sub.File())
		o.WasAttrs.Split()
		return err
	case !m.IsFile():
		return nil
	}
	f, err := d.Read(name)
	if err != nil {
		return nil //nolint:nilerr // it is gone or closed to us: the op says so when it is carried out
	}
	defer f.Close()
	o.WasAttrs, err = tree.ReadAttrs(f)
	if o.WasAttrs.Split(); err != nil || m.Size > maxHashed {
		return err
	}
	if o.Old, err = tree.Digest(f, m.Size); err != nil { // it changed while it was read
		o.Old = ""
	}
	return nil
}

// A Record is a set as stored on disk.
type Record struct {
	Set
	Phase Phase    `json:"phase"`
	Stage string   `json:"stage"` // name of the folder in Folder where content is staged
	Dev   uint64   `json:"dev"`   // of Folder
	Ino   uint64   `json:"ino"`
	Locks []string `json:"locks,omitempty"` // lock files of git's in Folder
	Ops   []Op     `json:"ops"`             // the last field: see DecodeHead
}

const endMark = "\nend sha256:"

// List returns the set with the changes that are listed.
func (r *Record) List() *Set {
	set := r.Set
	set.Changes = nil
	for i := range r.Ops {
		if !r.Ops[i].Internal {
			set.Changes = append(set.Changes, r.Ops[i].Change)
		}
	}
	return &set
}

// HoldGit holds the applied ops on git's data. These are carried out all together or not
// at all.
func (r *Record) HoldGit(why Why, reason string) {
	for i := range r.Ops {
		if o := &r.Ops[i]; o.Git && o.State == Applied {
			o.State, o.Why, o.Reason = Held, why, reason
		}
	}
}

// Encode returns the bytes of a record, which end with a mark that holds their
// digest.
func (r *Record) Encode() ([]byte, error) {
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

// DecodeHead returns a record without its ops, which it does not read. It does not check
// whether the record is complete.
func DecodeHead(from io.Reader) (*Record, error) {
	d := json.NewDecoder(from)
	_, err := d.Token() // the bracket
	fields := map[string]json.RawMessage{}
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil || key == "ops" { // the last one, see Record
			break
		}
		var value json.RawMessage
		err = d.Decode(&value)
		fields[fmt.Sprint(key)] = value
	}
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	r := &Record{}
	return r, json.Unmarshal(data, r)
}

// Decode returns the record that Encode encoded. It checks the mark at the end.
func Decode(data []byte) (*Record, error) {
	at := bytes.LastIndex(data, []byte(endMark))
	if at < 0 || string(data[at:]) != fmt.Sprintf("%s%x\n", endMark, sha256.Sum256(data[:at])) {
		return nil, errors.New("it has no end mark")
	}
	r := &Record{}
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
