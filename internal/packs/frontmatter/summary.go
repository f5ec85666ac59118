package frontmatter

import (
	"encoding/binary"
	"errors"
)

// A Summary is what a catalog of many packs keeps of a [Document]. It never
// changes.
type Summary struct {
	Name         string // may be empty, when that is what is wrong with the document
	Description  string // whole
	ArgumentHint string

	Tags  []string
	Modes []string // where the pack is offered; empty means everywhere

	UserInvocable          *bool // false: no prompt for people
	DisableModelInvocation bool  // not to be offered to the model

	nameLine, descriptionLine int32
}

// Summary returns what is to be kept of the Document.
func (d *Document) Summary() *Summary {
	return &Summary{
		Name: d.Name, Description: d.Description, ArgumentHint: d.ArgumentHint, Tags: d.Tags, Modes: d.Modes,
		UserInvocable: d.UserInvocable, DisableModelInvocation: d.DisableModelInvocation,
		nameLine: int32(d.KeyLine("name")), descriptionLine: int32(d.KeyLine("description")),
	}
}

// NameLine returns the line of the file on which the name stands, or 0 when
// there is none.
func (s *Summary) NameLine() int { return int(s.nameLine) }

// DescriptionLine is [Summary.NameLine] of the description.
func (s *Summary) DescriptionLine() int { return int(s.descriptionLine) }

// ErrBinary says that bytes are not what AppendBinary wrote.
var ErrBinary = errors.New("not a summary of frontmatter")

// Bits of a Summary's flags.
const (
	saysUserInvocable = 1 << iota
	userInvocable
	disableModelInvocation
)

// AppendBinary appends the Summary in a form that [FromBinary] reads. The error
// is nil.
func (s *Summary) AppendBinary(b []byte) ([]byte, error) {
	var flags uint64
	if s.UserInvocable != nil {
		if flags |= saysUserInvocable; *s.UserInvocable {
			flags |= userInvocable
		}
	}
	if s.DisableModelInvocation {
		flags |= disableModelInvocation
	}
	for _, n := range []uint64{flags, uint64(s.nameLine), uint64(s.descriptionLine)} {
		b = binary.AppendUvarint(b, n)
	}
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(s.Name)
	text(s.Description)
	text(s.ArgumentHint)
	for _, list := range [][]string{s.Tags, s.Modes} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			text(s)
		}
	}
	return b, nil
}

// FromBinary reads what AppendBinary wrote, all of src. The texts of the
// Summary are parts of src.
func FromBinary(src string) (*Summary, error) {
	r := reader{rest: src}
	flags := r.number()
	s := &Summary{DisableModelInvocation: flags&disableModelInvocation != 0, nameLine: int32(r.number()), descriptionLine: int32(r.number())}
	if flags&saysUserInvocable != 0 {
		s.UserInvocable = new(flags&userInvocable != 0)
	}
	s.Name, s.Description, s.ArgumentHint = r.text(), r.text(), r.text()
	for _, list := range []*[]string{&s.Tags, &s.Modes} {
		for range r.count() {
			*list = append(*list, r.text())
		}
	}
	if r.bad || r.rest != "" {
		return nil, ErrBinary
	}
	return s, nil
}

// A reader takes values from the head of a text.
type reader struct {
	rest string
	bad  bool // something was not there; everything after it is empty
}

func (r *reader) number() uint64 {
	var v uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		v |= uint64(r.rest[i]&0x7f) << (7 * i)
		if r.rest[i] < 0x80 {
			r.rest = r.rest[i+1:]
			return v
		}
	}
	r.bad, r.rest = true, ""
	return 0
}

// count is a number of things of which each has at least one byte.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}
