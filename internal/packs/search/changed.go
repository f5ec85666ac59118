package search

import (
	"encoding/binary"
	"strings"
)

// Changed returns the Index that [New] would make of len(old) documents, most of
// which are in x. Document i is document old[i] of x or, if old[i] is negative, what
// fresh returns for it. Documents from x must be in the same order as in x. Changed
// takes a small part of the time that New takes.
func (x *Index) Changed(old []int, fresh func(i int) Document) *Index {
	now := make([]int, len(x.lengths)) // :: document of x → its index, or -1
	for i := range now {
		now[i] = -1
	}
	b := builder{ids: make(map[string]uint32)}
	lengths := make([]uint16, len(old))
	for i, was := range old {
		if was >= 0 {
			now[was], lengths[i] = i, x.lengths[was]
			continue
		}
		d := fresh(i)
		b.document(uint32(i), &d)
		lengths[i] = b.lengths[len(b.lengths)-1]
	}
	added := b.index().index(nil)
	p := newPacker(len(x.words)+len(added.words), len(x.postings)+len(added.postings))
	var kept, more, all []uint32 // of one word
	for i, j := 0, 0; i < len(x.words) || j < len(added.words); {
		order := -1 // which of the two indexes has the next word
		if i == len(x.words) {
			order = 1
		} else if j < len(added.words) {
			order = strings.Compare(x.words[i], added.words[j])
		}
		var word string
		kept, more = kept[:0], more[:0]
		if order >= 0 {
			word = added.words[j]
			more = added.appendPostings(more, j)
			j++
		}
		if order <= 0 {
			word = x.words[i]
			kept = x.appendPostings(kept, i)
			i++
		}
		all = all[:0]
		for _, posting := range kept {
			doc := now[posting>>fieldBits]
			if doc < 0 {
				continue
			}
			for len(more) > 0 && int(more[0]>>fieldBits) < doc {
				all, more = append(all, more[0]), more[1:]
			}
			all = append(all, uint32(doc)<<fieldBits|posting&(1<<fieldBits-1))
		}
		if all = append(all, more...); len(all) > 0 {
			p.add(word, all)
		}
	}
	return p.index(lengths)
}

// appendPostings appends where a word occurs: documents << fieldBits | fields.
func (x *Index) appendPostings(to []uint32, word int) []uint32 {
	packed := x.postings[x.starts[word]:x.starts[word+1]]
	_, size := binary.Uvarint(packed)
	doc := uint32(0)
	for packed = packed[size:]; len(packed) > 0; packed = packed[size:] {
		var p uint64
		p, size = binary.Uvarint(packed)
		doc += uint32(p >> fieldBits)
		to = append(to, doc<<fieldBits|uint32(p)&(1<<fieldBits-1))
	}
	return to
}
