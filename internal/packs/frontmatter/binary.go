package frontmatter

import (
	"encoding/binary"
	"errors"
)

// errBinary says that bytes are not what AppendBinary wrote.
var errBinary = errors.New("not a document of this program")

// Bits of a Document's flags.
const (
	hasReadOnly = 1 << iota
	readOnly
	hasAlwaysAsk
	alwaysAsk
	hasNetwork
	network
	hasUserInvocable
	userInvocable
	disableModelInvocation
	hasTimeout
)

// AppendBinary appends the Document in a form that [FromBinary] reads, of this
// same build of the program. It fails for one that had to be recovered: that
// one is read again.
func (d *Document) AppendBinary(b []byte) ([]byte, error) {
	if d.node != nil {
		return b, errors.New("a recovered document is read again")
	}
	var flags uint64
	set := func(p *bool, has, is uint64) {
		if p != nil {
			if flags |= has; *p {
				flags |= is
			}
		}
	}
	set(d.ReadOnly, hasReadOnly, readOnly)
	set(d.AlwaysAsk, hasAlwaysAsk, alwaysAsk)
	set(d.Network, hasNetwork, network)
	set(d.UserInvocable, hasUserInvocable, userInvocable)
	if d.DisableModelInvocation {
		flags |= disableModelInvocation
	}
	if d.Timeout != nil {
		flags |= hasTimeout
	}
	b = binary.AppendUvarint(b, flags)
	if d.Timeout != nil {
		b = binary.AppendUvarint(b, uint64(*d.Timeout))
	}
	b = binary.AppendUvarint(b, uint64(d.BodyOffset))
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, s := range []string{d.Name, d.Description, d.License, d.Compatibility, d.ArgumentHint, d.Version, d.Author, d.AllowedTools, string(d.raw)} {
		text(s)
	}
	for _, list := range [][]string{d.Tags, d.Modes} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			text(s)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(d.keys)))
	for _, k := range d.keys {
		text(k.key)
		b = binary.AppendUvarint(b, uint64(k.line))
	}
	return b, nil
}

// FromBinary reads what AppendBinary wrote, all of src. The texts of the
// Document are parts of src.
func FromBinary(src string) (*Document, error) {
	r := reader{rest: src}
	d := &Document{}
	flags := r.number()
	get := func(has, is uint64) *bool {
		if flags&has == 0 {
			return nil
		}
		return new(flags&is != 0)
	}
	d.ReadOnly, d.AlwaysAsk = get(hasReadOnly, readOnly), get(hasAlwaysAsk, alwaysAsk)
	d.Network, d.UserInvocable = get(hasNetwork, network), get(hasUserInvocable, userInvocable)
	d.DisableModelInvocation = flags&disableModelInvocation != 0
	if flags&hasTimeout != 0 {
		d.Timeout = new(int(r.number()))
	}
	d.BodyOffset = int(r.number())
	for _, s := range []*string{&d.Name, &d.Description, &d.License, &d.Compatibility, &d.ArgumentHint, &d.Version, &d.Author, &d.AllowedTools} {
		*s = r.text()
	}
	d.raw = []byte(r.text())
	for _, list := range []*[]string{&d.Tags, &d.Modes} {
		for range r.count() {
			*list = append(*list, r.text())
		}
	}
	if n := r.count(); n > 0 {
		d.keys = make([]keyLine, n)
		for i := range d.keys {
			d.keys[i] = keyLine{known(r.text()), int(r.number())}
		}
	}
	if r.bad || r.rest != "" {
		return nil, errBinary
	}
	return d, nil
}

// known returns the program's own copy of keys that nearly every document has.
func known(key string) string {
	switch key {
	case "name":
		return "name"
	case "description":
		return "description"
	}
	return key
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
