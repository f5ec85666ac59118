// Package search finds packs by what people and models type: words of a name,
// a tag, a tool's name or a description, the beginnings of such words, and words
// with one letter wrong.
//
// It knows no packs and no catalog, only texts and the order they were given
// in. It is this small because the libraries for it are made for millions of
// documents: of ten thousand packs, the best known one makes an index in 16
// seconds of processor, holds it in 350 MiB, and answers in 8 to 23 ms.
package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Document is what can be found of one pack. Each list, and each text, counts
// as far as its bound only.
type Document struct {
	Name        string   // and its id, with what parts them: 512 bytes
	Tags        []string // 64
	Tools       []string // names: 256
	Description string   // 4 KiB
}

// A Hit is one document that was found.
type Hit struct {
	Index int     // of the document, in the order they were given
	Words int     // how many words of the query it has
	Score float64 // comparable within one search
}

// Bounds of a document and of a query. A pack that says more is found by what it
// says first.
const (
	maxName        = 512
	maxTags        = 64
	maxTools       = 256
	maxDescription = 4 << 10
	maxWord        = 64 // bytes
	maxQuery       = 16 // words
	maxQueryText   = 4 << 10
)

// A field is one bit for each kind of text a word may stand in.
type field = uint32

const (
	inName field = 1 << iota
	inTags
	inTools
	inDescription
	fieldBits = 4
)

// An Index holds what can be found. It never changes, and is safe for
// concurrent use. Making one takes a few microseconds a document; about a
// hundred bytes of each are kept.
type Index struct {
	words []string // sorted
	// starts[i] is where the postings of words[i] begin, and those of the word
	// before end; there is one more than words.
	starts []uint32
	// postings are varints: of a word, how many there are, and then for each the
	// index of a document, less that of the one before, << fieldBits | fields.
	postings []byte
	docs     int
}

// New makes an Index of documents.
func New(docs []Document) *Index {
	b := builder{ids: make(map[string]uint32), last: make([]uint32, 0, 1024)}
	for i := range docs {
		b.document(uint32(i), &docs[i])
	}
	return b.index(len(docs))
}

// A builder collects postings in the order of the documents.
type builder struct {
	ids   map[string]uint32 // :: word → its number
	words []string          // by number
	last  []uint32          // :: number of a word → 1 + where its last posting is
	pairs []pair
}

type pair struct{ word, posting uint32 }

func (b *builder) document(i uint32, d *Document) {
	add := func(text string, max int, f field) {
		for w := range words(cut(text, max)) {
			b.add(i, w, f)
		}
	}
	add(d.Name, maxName, inName)
	for _, t := range d.Tags[:min(len(d.Tags), maxTags)] {
		add(t, maxName, inTags)
	}
	for _, t := range d.Tools[:min(len(d.Tools), maxTools)] {
		add(t, maxName, inTools)
	}
	add(d.Description, maxDescription, inDescription)
}

func (b *builder) add(doc uint32, word string, f field) {
	id, known := b.ids[word]
	if !known {
		id = uint32(len(b.words))
		word = strings.Clone(word) // and not the document's text
		b.ids[word] = id
		b.words = append(b.words, word)
		b.last = append(b.last, 0)
	}
	if at := b.last[id]; at > 0 && b.pairs[at-1].posting>>fieldBits == doc {
		b.pairs[at-1].posting |= f
		return
	}
	b.pairs = append(b.pairs, pair{id, doc<<fieldBits | f})
	b.last[id] = uint32(len(b.pairs))
}

// index sorts the words, and the postings by them.
func (b *builder) index(docs int) *Index {
	order := make([]uint32, len(b.words))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.words[x], b.words[y]) })
	// first[r] is where the pairs of the word of this rank begin among all.
	first, rank := make([]uint32, len(order)+1), b.last // which is no longer needed
	for r, id := range order {
		rank[id] = uint32(r)
	}
	for _, p := range b.pairs {
		first[rank[p.word]+1]++
	}
	for i := range order {
		first[i+1] += first[i]
	}
	byWord, next := make([]uint32, len(b.pairs)), slices.Clone(first)
	for _, p := range b.pairs {
		at := &next[rank[p.word]]
		byWord[*at] = p.posting
		*at++
	}
	p := newPacker(len(order), 2*len(b.pairs))
	for r, id := range order {
		p.add(b.words[id], byWord[first[r]:first[r+1]])
	}
	return p.index(docs)
}

// A packer puts an Index together.
type packer struct {
	words    []string
	starts   []uint32
	text     int // bytes of all words
	postings []byte
}

func newPacker(words, bytes int) *packer {
	return &packer{words: make([]string, 0, words), starts: make([]uint32, 1, words+1), postings: make([]byte, 0, bytes)}
}

// add takes the next word, and where it stands.
func (p *packer) add(word string, postings []uint32) {
	p.words = append(p.words, word)
	p.text += len(word)
	p.postings = binary.AppendUvarint(p.postings, uint64(len(postings)))
	before := uint32(0)
	for _, posting := range postings {
		doc := posting >> fieldBits
		p.postings = binary.AppendUvarint(p.postings, uint64((doc-before)<<fieldBits|posting&(1<<fieldBits-1)))
		before = doc
	}
	p.starts = append(p.starts, uint32(len(p.postings)))
}

func (p *packer) index(docs int) *Index {
	// All words in one piece: each on its own would keep a page of what is thrown
	// away in memory.
	text := make([]byte, 0, p.text)
	for _, w := range p.words {
		text = append(text, w...)
	}
	all := string(text)
	for i, w := range p.words {
		p.words[i], all = all[:len(w)], all[len(w):]
	}
	// Without what is left over.
	return &Index{words: slices.Clone(p.words), starts: slices.Clone(p.starts), postings: slices.Clone(p.postings), docs: docs}
}

// How much a match counts.
const (
	exact = 1.0
	// A beginning counts the more, the more of the word it is.
	beginning = 0.7
	typo      = 0.45
)

// weights are what a word counts for, by where it stands.
var weights = [...]float64{inName: 10, inTags: 6, inTools: 5, inDescription: 2} // never modified

// weight returns what a word counts for that stands in these fields: what the
// best of them counts, and a little for each other.
func weight(fields uint32) float64 {
	best, sum := 0.0, 0.0
	for f := inName; f <= inDescription; f <<= 1 {
		if fields&f != 0 {
			best, sum = max(best, weights[f]), sum+weights[f]
		}
	}
	return best + (sum-best)/10
}

// Search returns the documents that the query is about, the best first, at most
// limit. Of a query, its first 16 words within 4 KiB count. Those that have more of
// its words come before those that have fewer; of equals, those that were given first.
// A query without a word finds nothing. Of a document that keep, unless it is nil, is
// false for, nothing is returned.
func (x *Index) Search(query string, limit int, keep func(doc int) bool) []Hit {
	asked := wordsOf(query)
	if len(asked) == 0 || x.docs == 0 || limit <= 0 {
		return nil
	}
	var byField [1 << fieldBits]float64
	for f := range byField {
		byField[f] = weight(uint32(f))
	}
	total := make([]float32, x.docs)
	count := make([]uint8, x.docs)
	best := make([]float32, x.docs) // of one word of the query
	var found []uint32
	for _, w := range asked {
		found = found[:0]
		exactly := uint64(0) // how many documents have this very word
		x.matches(w, func(word int, quality float64) {
			postings := x.postings[x.starts[word]:x.starts[word+1]]
			n, size := binary.Uvarint(postings)
			if quality == exact {
				exactly = n
			}
			doc := uint32(0)
			for postings = postings[size:]; len(postings) > 0; postings = postings[size:] {
				var p uint64
				p, size = binary.Uvarint(postings)
				doc += uint32(p >> fieldBits)
				score := float32(quality * byField[p&(1<<fieldBits-1)])
				if best[doc] == 0 {
					found = append(found, doc)
				}
				if score > best[doc] {
					best[doc] = score
				}
			}
		})
		// What is rare counts more: the word that was asked for, and not those that
		// are near to it. Else a rare ending would be better than the word itself.
		rarity := float32(math.Log(1 + float64(x.docs)/float64(max(cmp.Or(exactly, uint64(len(found))), 1))))
		for _, doc := range found {
			total[doc] += rarity * best[doc]
			count[doc]++
			best[doc] = 0
		}
	}
	return top(total, count, limit, keep)
}

// wordsOf are the words of a query that count.
func wordsOf(query string) []string {
	var asked []string
	for w := range words(cut(query, maxQueryText)) {
		if !slices.Contains(asked, w) && len(asked) < maxQuery {
			asked = append(asked, w)
		}
	}
	return asked
}

// Names returns what reports whether a text, which counts as a [Document]'s name,
// has a word that begins as one of the query's does, without a letter wrong. It is
// for the few texts that are in no Index.
func Names(query string) func(text string) bool {
	asked := wordsOf(query)
	return func(text string) bool {
		for w := range words(cut(text, maxName)) {
			for _, a := range asked {
				if w == a || begins(w, a) {
					return true
				}
			}
		}
		return false
	}
}

// begins reports whether a word begins with what was asked for: one letter is a
// word, and no beginning.
func begins(word, asked string) bool {
	return strings.HasPrefix(word, asked) && (!isASCII(asked) || len(asked) > 1)
}

// top returns the best documents.
func top(total []float32, count []uint8, limit int, keep func(doc int) bool) []Hit {
	before := func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Words, a.Words), cmp.Compare(b.Score, a.Score), cmp.Compare(a.Index, b.Index))
	}
	var hits []Hit // sorted
	for doc, n := range count {
		if n == 0 {
			continue
		}
		h := Hit{Index: doc, Words: int(n), Score: float64(total[doc])}
		if len(hits) == limit && before(h, hits[limit-1]) > 0 {
			continue
		}
		if keep != nil && !keep(doc) { // asked last: most are not good enough
			continue
		}
		at, _ := slices.BinarySearchFunc(hits, h, before)
		if len(hits) == limit {
			hits = hits[:limit-1]
		}
		hits = slices.Insert(hits, at, h)
	}
	return hits
}

// matches calls yield with each word of the index that a word of a query may
// mean, and how well it does.
func (x *Index) matches(asked string, yield func(word int, quality float64)) {
	from, _ := slices.BinarySearch(x.words, asked)
	to := from
	length := utf8.RuneCountInString(asked)
	for ; to < len(x.words) && strings.HasPrefix(x.words[to], asked); to++ {
		if x.words[to] == asked {
			yield(to, exact)
		} else if length > 1 || !isASCII(asked) {
			yield(to, beginning*(0.4+0.6*float64(len(asked))/float64(len(x.words[to]))))
		}
	}
	if length < minTypo {
		return
	}
	for i, w := range x.words {
		if (i < from || i >= to) && near(asked, w) {
			yield(i, typo)
		}
	}
}

// minTypo is how many letters a word has, at least, in which one may be wrong:
// shorter ones are near to too many others.
const minTypo = 4
