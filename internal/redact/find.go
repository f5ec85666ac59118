package redact

import (
	"encoding/binary"
	"strings"
)

// A span is text[from:to].
type span struct{ from, to int }

// maxSteps bounds the bytes that one search compares: a tenth of a second. Malicious
// words and texts could take hours.
const maxSteps = 1 << 27

// A finder finds many words in a text, by their first bytes.
type finder struct {
	starts [1 << 10]uint64     // has a bit for the hash of each word's start
	words  map[uint32][]string // :: start → the words that have it, the longest first
}

// newFinder returns a finder of words, which must have at least minSecret bytes,
// longest first.
func newFinder(words []string) *finder {
	f := &finder{words: make(map[uint32][]string, len(words))}
	for _, w := range words {
		at := start(w)
		f.words[at] = append(f.words[at], w)
		h := hash(at)
		f.starts[h/64] |= 1 << (h % 64)
	}
	return f
}

// start returns the first minSecret bytes of a text.
func start(text string) uint32 { return binary.LittleEndian.Uint32([]byte(text[:minSecret])) }

// hash returns 16 bits that depend on all of start.
func hash(start uint32) uint32 { return start * 2654435761 >> 16 }

// find returns the positions of words in text, including overlapping ones, in order.
// If that takes too long, it returns all of text: better to show nothing than a
// secret.
func (f *finder) find(text string) []span {
	if len(f.words) == 0 {
		return nil
	}
	var spans []span
	steps := 0
	for from := 0; from+minSecret <= len(text); from++ {
		at := start(text[from:])
		if h := hash(at); f.starts[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, w := range f.words[at] {
			same := common(text[from:], w)
			if steps += same; steps > maxSteps {
				return []span{{0, len(text)}}
			}
			if same == len(w) {
				spans = append(spans, span{from, from + same})
				break // it covers the shorter ones
			}
		}
	}
	return spans
}

// common returns the length of the common prefix.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// cutSpans returns text with the mark in place of each run of overlapping spans,
// which must be sorted by their start.
func cutSpans(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	var out strings.Builder
	kept := 0
	for i := 0; i < len(spans); {
		from, to := spans[i].from, spans[i].to
		for i++; i < len(spans) && spans[i].from < to; i++ {
			to = max(to, spans[i].to)
		}
		out.WriteString(text[kept:from])
		out.WriteString(Mark)
		kept = to
	}
	out.WriteString(text[kept:])
	return out.String()
}
