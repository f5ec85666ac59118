package search

import (
	"encoding/binary"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

// Append appends the Index to b, in the form that [Read] takes.
func (x *Index) Append(b []byte) []byte {
	b = packed.AppendTexts(b, x.words)
	for i := range x.words {
		b = binary.AppendUvarint(b, uint64(x.starts[i+1]-x.starts[i]))
	}
	b = append(b, x.postings...)
	b = binary.AppendUvarint(b, uint64(len(x.lengths)))
	for _, n := range x.lengths {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// Len returns the number of documents.
func (x *Index) Len() int { return len(x.lengths) }

var errStored = errors.New("it is not an index of words")

// Read takes an Index from a text, which may come from anywhere: no input makes it
// panic, or makes an Index that does later. The Index shares no memory with the text.
func Read(from *packed.Reader) (*Index, error) {
	p := packer{words: from.Texts(), starts: []uint32{0}}
	end := 0
	for range p.words {
		end += from.Count()
		p.starts = append(p.starts, uint32(end))
	}
	p.postings = []byte(from.Bytes(end))
	lengths := make([]uint16, from.Count())
	for i := range lengths {
		n := from.Number()
		if lengths[i] = uint16(n); uint64(lengths[i]) != n {
			from.Fail()
		}
	}
	if from.IsBad() {
		return nil, errStored
	}
	for i, w := range p.words {
		if w == "" || i > 0 && w <= p.words[i-1] || !arePostings(p.postings[p.starts[i]:p.starts[i+1]], len(lengths)) {
			return nil, errStored
		}
		p.text += len(w)
	}
	return p.index(lengths), nil
}

// arePostings reports whether these are the postings of a word in an Index of docs
// documents.
func arePostings(packed []byte, docs int) bool {
	count, size := binary.Uvarint(packed)
	if size <= 0 || count == 0 {
		return false
	}
	doc := uint64(0)
	for n := range count {
		packed = packed[size:]
		var posting uint64
		if posting, size = binary.Uvarint(packed); size <= 0 {
			return false
		}
		more := posting >> fieldBits
		if doc += more; doc >= uint64(docs) || more == 0 && n > 0 || posting&(1<<fieldBits-1) == 0 {
			return false
		}
	}
	return len(packed) == size
}
