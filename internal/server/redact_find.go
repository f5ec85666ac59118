package server

import (
	"slices"
	"strings"
)

// A span is text[from:to].
type span struct{ from, to int }

const (
	// fewSteps is how many comparisons of bytes may be made one by one before a
	// machine that looks for everything at once is worth its making.
	fewSteps = 1 << 22
	// maxWords bounds the bytes of all the words of such a machine, which takes
	// 20 times as much.
	maxWords = 2 << 20
)

// findAll returns where any of words is in text, overlaps and all. It takes time
// linear in the bytes of both. When the words are too many to look for, it
// returns all of text: better nothing shown than a secret.
func findAll(text string, words []string) []span {
	total := 0
	for _, w := range words {
		total += len(w)
	}
	switch {
	case total == 0:
		return nil
	case total <= fewSteps/len(text):
		var spans []span
		for _, w := range words {
			for from := 0; ; from++ {
				i := strings.Index(text[from:], w)
				if i < 0 {
					break
				}
				from += i
				spans = append(spans, span{from, from + len(w)})
			}
		}
		return spans
	case total > maxWords:
		return []span{{0, len(text)}}
	}
	return newMachine(words, total).find(text)
}

// cutSpans is text with the mark in the place of each run of overlapping spans.
func cutSpans(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var out strings.Builder
	kept := 0
	for i := 0; i < len(spans); {
		from, to := spans[i].from, spans[i].to
		for i++; i < len(spans) && spans[i].from < to; i++ {
			to = max(to, spans[i].to)
		}
		out.WriteString(text[kept:from])
		out.WriteString(redactedMark)
		kept = to
	}
	out.WriteString(text[kept:])
	return out.String()
}

// A machine finds many words in one pass over a text, after Aho and Corasick.
type machine struct {
	nodes []node     // 0 is the root
	first [256]int32 // :: byte → the root's child, or 0
}

type node struct {
	child, sibling int32 // the first one below, and the next one beside; 0: none
	fail           int32 // the node of the longest end of this one's text that is in the machine
	longest        int32 // length of the longest word that ends here; 0: none
	letter         byte
}

// newMachine makes a machine for words, which have total bytes.
func newMachine(words []string, total int) *machine {
	m := &machine{nodes: make([]node, 1, min(total, maxWords)+1)}
	for _, w := range words {
		at := int32(0)
		for i := range len(w) {
			next := m.below(at, w[i])
			if next == 0 {
				next = m.grow(at, w[i])
			}
			at = next
		}
		m.nodes[at].longest = max(m.nodes[at].longest, int32(len(w)))
	}
	// Level by level: the fail of a node is nearer to the root.
	var queue []int32
	for _, at := range m.first {
		if at != 0 {
			queue = append(queue, at)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for child := m.nodes[at].child; child != 0; child = m.nodes[child].sibling {
			n := &m.nodes[child]
			n.fail = m.next(m.nodes[at].fail, n.letter)
			n.longest = max(n.longest, m.nodes[n.fail].longest)
			queue = append(queue, child)
		}
	}
	return m
}

func (m *machine) grow(at int32, letter byte) int32 {
	made := int32(len(m.nodes))
	if at == 0 {
		m.first[letter] = made
		m.nodes = append(m.nodes, node{letter: letter})
		return made
	}
	m.nodes = append(m.nodes, node{letter: letter, sibling: m.nodes[at].child})
	m.nodes[at].child = made
	return made
}

// below returns the child of at for letter, or 0.
func (m *machine) below(at int32, letter byte) int32 {
	if at == 0 {
		return m.first[letter]
	}
	child := m.nodes[at].child
	for child != 0 && m.nodes[child].letter != letter {
		child = m.nodes[child].sibling
	}
	return child
}

// next returns where letter leads from at.
func (m *machine) next(at int32, letter byte) int32 {
	for {
		if child := m.below(at, letter); child != 0 || at == 0 {
			return child
		}
		at = m.nodes[at].fail
	}
}

// find returns the spans of words in text, the longest for each end. Spans that
// overlap are joined where that is easily done, so that they are few.
func (m *machine) find(text string) []span {
	var spans []span
	at := int32(0)
	for i := range len(text) {
		at = m.next(at, text[i])
		length := int(m.nodes[at].longest)
		if length == 0 {
			continue
		}
		found := span{i + 1 - length, i + 1}
		if last := len(spans) - 1; last >= 0 && found.from < spans[last].to {
			found.from = min(found.from, spans[last].from)
			spans[last] = found
			continue
		}
		spans = append(spans, found)
	}
	return spans
}
