// Package search finds packs by what people and models type: sentences, words of a
// name, a tag, a tool's name or a description. It also finds other forms of these
// words, words that begin with them, and words with one letter wrong.
//
// The ranking is BM25 over fields: a document's score is the sum, over the words of a
// query, of how rare the word is, times how well it occurs in the document. The
// package does not depend on particular packs or subjects.
//
// It knows no packs and no catalog, only texts and the order in which they were
// given. It has its own small index because the libraries for it are made for
// millions of documents: for ten thousand packs, the best known one uses 16 seconds
// of processor time to make an index, holds it in 350 MiB, and answers in 8 to 23 ms.
package search

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Document is the text by which one pack can be found. Each list and text counts
// only up to its bound.
type Document struct {
	Name        string   // and its id, with a separator: 512 bytes
	Tags        []string // 64
	Tools       []string // names: 256
	Description string   // 4 KiB
}

// A Hit is one document that was found.
type Hit struct {
	Index  int     // of the document, in the order they were given
	Score  float64 // comparable within one search
	Copies []int   // other documents that were found and are copies of it, by index
}

// A Filter restricts a search.
type Filter struct {
	// Keep reports whether a document may be found; nil: every document may.
	Keep func(doc int) bool
	// Mark returns the same number for documents that are copies of each other. The
	// best of them is a hit, and the others are in its Copies. nil: there are no
	// copies.
	Mark func(doc int) uint64
}

// Bounds of a document and of a query. If a pack's text is longer, only the beginning
// can be found.
const (
	maxName        = 512
	maxTags        = 64
	maxTools       = 256
	maxDescription = 4 << 10
	maxWord        = 64 // bytes
	maxQuery       = 16 // words
	maxQueryText   = 4 << 10
)

// A field has one bit for each kind of text in which a word may occur.
type field = uint32

const (
	inName field = 1 << iota
	inTags
	inTools
	inDescription
	fieldBits = 4
)

// An Index holds what can be found. It never changes, and is safe for concurrent use.
// Making one takes a few microseconds for each document, and it keeps about a hundred
// bytes of each.
type Index struct {
	words []string // sorted
	// starts[i] is where the postings of words[i] begin and those of words[i-1] end.
	// It has one element more than words.
	starts []uint32
	// postings are varints. For each word they hold how many documents have it, and
	// for each document its index, less that of the document before, << fieldBits |
	// fields.
	postings []byte
	lengths  []uint16 // :: document → words of its description
	mean     float32  // mean of lengths
}

// New makes an Index of documents. It keeps none of them.
func New(docs iter.Seq[Document]) *Index {
	b := builder{ids: make(map[string]uint32)}
	for d := range docs {
		b.document(uint32(len(b.lengths)), &d)
	}
	return b.index().index(b.lengths)
}

// A builder collects postings in the order of the documents.
type builder struct {
	ids     map[string]uint32 // :: word → its number
	words   []string          // by number
	entries []entry           // by number

	lengths []uint16 // of documents, in the order they came
}

// An entry says where a word occurs. Its postings are encoded as in an [Index],
// without the count, since they are most of what a builder holds.
type entry struct {
	packed []byte // all postings except the last
	before uint32 // the document of the posting before the last; 0: none
	last   uint32 // the last posting: document << fieldBits | fields
	count  uint32
}

// pack packs the last posting, to make room for the next.
func (e *entry) pack() {
	if e.count > 0 {
		e.packed, e.before = appendPosting(e.packed, e.before, e.last)
	}
}

// appendPosting appends a posting to those of a word, the last of which is for the
// document before. It returns the new posting's document.
func appendPosting(to []byte, before, posting uint32) ([]byte, uint32) {
	doc := posting >> fieldBits
	return binary.AppendUvarint(to, uint64(doc-before)<<fieldBits|uint64(posting&(1<<fieldBits-1))), doc
}

func (b *builder) document(i uint32, d *Document) {
	add := func(text string, max int, f field) (n uint16) {
		for w := range words(cut(text, max)) {
			b.add(i, w, f)
			n++
		}
		return n
	}
	add(d.Name, maxName, inName)
	for _, t := range d.Tags[:min(len(d.Tags), maxTags)] {
		add(t, maxName, inTags)
	}
	for _, t := range d.Tools[:min(len(d.Tools), maxTools)] {
		add(t, maxName, inTools)
	}
	b.lengths = append(b.lengths, add(d.Description, maxDescription, inDescription))
}

func (b *builder) add(doc uint32, word string, f field) {
	id, known := b.ids[word]
	if !known {
		id = uint32(len(b.words))
		word = strings.Clone(word) // do not keep the document's text in memory
		b.ids[word] = id
		b.words = append(b.words, word)
		b.entries = append(b.entries, entry{})
	}
	e := &b.entries[id]
	if e.count > 0 && e.last>>fieldBits == doc {
		e.last |= f
		return
	}
	e.pack()
	e.last = doc<<fieldBits | f
	e.count++
}

// index sorts the words. The builder must not be used afterwards.
func (b *builder) index() *packer {
	order := make([]uint32, len(b.words))
	for i := range order {
		order[i] = uint32(i)
	}
	b.ids = nil
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.words[x], b.words[y]) })
	size := 0
	for i := range b.entries {
		e := &b.entries[i]
		e.pack()
		size += len(e.packed) + binary.MaxVarintLen32
	}
	p := newPacker(len(order), size)
	for _, id := range order {
		e := &b.entries[id]
		p.begin(b.words[id], e.count)
		p.postings = append(p.postings, e.packed...)
		p.end()
		e.packed = nil
	}
	return p
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

// begin adds the next word, which occurs in count documents. Its postings follow.
func (p *packer) begin(word string, count uint32) {
	p.words = append(p.words, word)
	p.text += len(word)
	p.postings = binary.AppendUvarint(p.postings, uint64(count))
}

func (p *packer) end() { p.starts = append(p.starts, uint32(len(p.postings))) }

// add adds the next word with its postings.
func (p *packer) add(word string, postings []uint32) {
	p.begin(word, uint32(len(postings)))
	before := uint32(0)
	for _, posting := range postings {
		p.postings, before = appendPosting(p.postings, before, posting)
	}
	p.end()
}

// index returns the Index of documents with these lengths.
func (p *packer) index(lengths []uint16) *Index {
	// Put all words into one string: separate strings would keep pages of discarded
	// data in memory.
	text := make([]byte, 0, p.text)
	for _, w := range p.words {
		text = append(text, w...)
	}
	all := string(text)
	for i, w := range p.words {
		p.words[i], all = all[:len(w)], all[len(w):]
	}
	// Clone drops spare capacity.
	x := &Index{words: slices.Clone(p.words), starts: slices.Clone(p.starts), postings: slices.Clone(p.postings), lengths: append([]uint16(nil), lengths...)}
	sum := 0
	for _, n := range lengths {
		sum += int(n)
	}
	x.mean = float32(max(sum, 1)) / float32(max(len(lengths), 1))
	return x
}

// How much a match counts.
const (
	exact    = 1.0
	sameStem = 0.9
	// A beginning counts more the larger the part of the word it is.
	beginning = 0.7
	typo      = 0.45
	initials  = 0.5 // "PR" for "pull request"
)

// Constants of BM25. The first says how soon it stops mattering how well a word
// occurs in a document. The second says how much less a word of a long description
// counts than one of a short one.
const (
	saturation = 1.2
	lengthPart = 0.4
)

// weights say how much a word counts in each field.
var weights = [...]float64{inName: 3, inTags: 2.2, inTools: 1.8, inDescription: 1} // never modified

// weight returns how much a word counts that occurs in these fields: the weight of
// the best field, and a part of each other's.
func weight(fields uint32) float64 {
	best, sum := 0.0, 0.0
	for f := inName; f <= inDescription; f <<= 1 {
		if fields&f != 0 {
			best, sum = max(best, weights[f]), sum+weights[f]
		}
	}
	return best + (sum-best)/4
}

// Search returns the documents that match the query, best first, at most limit.
// Equally good ones stay in the order in which they were given. Only the first 16
// words of the query within 4 KiB count. Common English words count only if there are
// no others. A query without a word finds nothing. A document that has one of the
// words scores higher if it also has the initials of others as an abbreviation.
func (x *Index) Search(query string, limit int, only Filter) []Hit {
	asked := wordsOf(query)
	if len(asked) == 0 || len(x.lengths) == 0 || limit <= 0 {
		return nil
	}
	var byField [1 << fieldBits]float64
	for f := range byField {
		byField[f] = weight(uint32(f))
	}
	docs := float64(len(x.lengths))
	total := make([]float32, len(x.lengths))
	best := make([]float32, len(x.lengths)) // for the current word of the query
	var found []uint32
	short := abbreviations(query)
	for i, w := range append(asked, short...) {
		found = found[:0]
		meant := 0 // how many documents have this word, or another form of it
		matches := x.matches
		if i >= len(asked) {
			matches = x.abbreviated
		}
		matches(w, func(word int, quality float64) {
			postings := x.postings[x.starts[word]:x.starts[word+1]]
			_, size := binary.Uvarint(postings)
			doc := uint32(0)
			for postings = postings[size:]; len(postings) > 0; postings = postings[size:] {
				var p uint64
				p, size = binary.Uvarint(postings)
				doc += uint32(p >> fieldBits)
				if best[doc] == 0 {
					found = append(found, doc)
					if quality >= sameStem {
						meant++
					}
				}
				best[doc] = max(best[doc], float32(quality*byField[p&(1<<fieldBits-1)]))
			}
		})
		// Rare words count more. Rarity is that of the word that was asked for, not
		// of words that only begin with it; otherwise a rare longer word would beat
		// the word itself.
		having := float64(cmp.Or(meant, len(found)))
		rarity := float32(math.Log(1 + (docs-having+0.5)/(having+0.5)))
		for _, doc := range found {
			if i >= len(asked) && total[doc] == 0 {
				best[doc] = 0
				continue // an abbreviation alone is not enough
			}
			long := 1 - lengthPart + lengthPart*float32(x.lengths[doc])/x.mean
			total[doc] += rarity * best[doc] / (best[doc] + saturation*long)
			best[doc] = 0
		}
	}
	return top(total, limit, only)
}

// wordsOf returns the words of a query that count.
func wordsOf(query string) []string {
	var asked, common []string
	for w := range words(cut(query, maxQueryText)) {
		list := &asked
		if isCommon(w) {
			list = &common
		}
		if len(*list) < maxQuery && !slices.Contains(*list, w) {
			*list = append(*list, w)
		}
	}
	if len(asked) == 0 {
		return common
	}
	return asked
}

// abbreviations returns the usual abbreviations of adjacent words in a query: "pr"
// for "pull request". Common words separate such groups.
func abbreviations(query string) []string {
	const most = 4 // words
	var all []string
	var run []string
	n := 0
	for w := range words(cut(query, maxQueryText)) {
		if n++; n > 2*maxQuery {
			break
		}
		if isCommon(w) || len(w) < 2 || !isASCII(w) {
			run = run[:0]
			continue
		}
		run = append(run, w[:1])
		for size := 2; size <= min(len(run), most); size++ {
			if short := strings.Join(run[len(run)-size:], ""); !slices.Contains(all, short) {
				all = append(all, short)
			}
		}
	}
	return all
}

// abbreviated calls yield with the word of the index that equals the abbreviation.
func (x *Index) abbreviated(short string, yield func(word int, quality float64)) {
	if i, ok := slices.BinarySearch(x.words, short); ok {
		yield(i, initials)
	}
}

// Names returns a function that reports whether a text, which is treated as a
// [Document]'s name, has a word that begins with a word of the query, with no letter
// wrong. It is for the few texts that are not in an Index.
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

// begins reports whether a word begins with what was asked for. A single letter only
// matches itself.
func begins(word, asked string) bool {
	return strings.HasPrefix(word, asked) && (!isASCII(asked) || len(asked) > 1)
}

// top returns the best documents.
func top(total []float32, limit int, only Filter) []Hit {
	var left ranking
	for doc, score := range total {
		if score > 0 {
			left = append(left, scored{score, uint32(doc)})
		}
	}
	heap.Init(&left)
	var hits []Hit
	at := make(map[uint64]int) // :: mark → index of its hit
	for len(left) > 0 && len(hits) < limit {
		s := heap.Pop(&left).(scored)
		doc := int(s.doc)
		if only.Keep != nil && !only.Keep(doc) { // called last, since most documents are not good enough
			continue
		}
		if only.Mark != nil {
			mark := only.Mark(doc)
			if i, ok := at[mark]; ok {
				hits[i].Copies = append(hits[i].Copies, doc)
				continue
			}
			at[mark] = len(hits)
		}
		hits = append(hits, Hit{Index: doc, Score: float64(s.score)})
	}
	if only.Mark != nil {
		for _, s := range left {
			doc := int(s.doc)
			if i, ok := at[only.Mark(doc)]; ok && (only.Keep == nil || only.Keep(doc)) {
				hits[i].Copies = append(hits[i].Copies, doc)
			}
		}
		for _, h := range hits {
			slices.Sort(h.Copies)
		}
	}
	return hits
}

// A ranking is a heap of documents, the best of them on top.
type ranking []scored

type scored struct {
	score float32
	doc   uint32
}

func (r ranking) Len() int { return len(r) }
func (r ranking) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(r[j].score, r[i].score), cmp.Compare(r[i].doc, r[j].doc)) < 0
}
func (r ranking) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *ranking) Push(s any)   { *r = append(*r, s.(scored)) }
func (r *ranking) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// matches calls yield with each word of the index that a word of a query may mean,
// and with how well it matches: first the word and its other forms, then words that
// begin with it and, only if there are none of these, words with one letter wrong.
func (x *Index) matches(asked string, yield func(word int, quality float64)) {
	from, _ := slices.BinarySearch(x.words, asked)
	none := true
	give := func(word int, quality float64) {
		none = false
		yield(word, quality)
	}
	if from < len(x.words) && x.words[from] == asked {
		give(from, exact)
	}
	// The forms of a word begin alike, except for the last letters of their common
	// stem: "policy" and "policies".
	root := stem(asked)
	begin := root[:max(min(len(root), 3), len(root)-2)]
	first, _ := slices.BinarySearch(x.words, begin)
	for i := first; i < len(x.words) && strings.HasPrefix(x.words[i], begin); i++ {
		if x.words[i] != asked && stem(x.words[i]) == root {
			give(i, sameStem)
		}
	}
	length := utf8.RuneCountInString(asked)
	if length > 1 || !isASCII(asked) {
		for i := from; i < len(x.words) && strings.HasPrefix(x.words[i], asked); i++ {
			if w := x.words[i]; w != asked && stem(w) != root {
				give(i, beginning*(0.4+0.6*float64(len(asked))/float64(len(w))))
			}
		}
	}
	if !none || length < minTypo {
		return
	}
	for i, w := range x.words {
		if near(asked, w) {
			yield(i, typo)
		}
	}
}

// minTypo is the least number of letters of a word in which one letter may be wrong:
// shorter words are similar to too many others.
const minTypo = 4
