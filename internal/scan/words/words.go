// Package words finds which of many words a text has, in any letter case of ASCII. The
// text is read once, however many words there are.
//
// It says which list a word is in, and not where the word is.
package words

// A Finder is an Aho-Corasick automaton for the words of some lists.
type Finder struct {
	classes [256]uint8 // :: byte → column of next; 0: the byte is in no word
	columns int
	// A state is a multiple of columns. A number below 0 is the complement of a state in
	// which a word ends.
	next  []int32 // :: state + column → the next state
	found [][]int // :: state / columns → lists with a word that ends there
}

// New returns a Finder for lists of words, which are in lower case.
func New(lists [][]string) *Finder {
	f := &Finder{}
	states := 1 // at most
	for _, list := range lists {
		for _, w := range list {
			states += len(w)
			for i := range len(w) {
				if f.classes[w[i]] == 0 {
					f.columns++
					f.classes[w[i]] = uint8(f.columns)
				}
			}
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		f.classes[c-'a'+'A'] = f.classes[c]
	}
	f.columns++
	f.next = make([]int32, 0, states*f.columns)
	grow := func() int32 {
		f.next = f.next[:len(f.next)+f.columns]
		f.found = append(f.found, nil)
		return int32(len(f.next) - f.columns)
	}
	grow()
	for i, list := range lists {
		for _, w := range list {
			at := int32(0)
			for k := range len(w) {
				cell := int(at) + int(f.classes[w[k]])
				if f.next[cell] == 0 {
					f.next[cell] = grow()
				}
				at = f.next[cell]
			}
			f.found[int(at)/f.columns] = append(f.found[int(at)/f.columns], i)
		}
	}
	fail := make([]int32, len(f.found))
	var queue []int32
	for c := range f.columns {
		if to := f.next[c]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		at := int(queue[0])
		queue = queue[1:]
		shorter := int(fail[at/f.columns]) // where the longest end of this text is that begins a word
		f.found[at/f.columns] = append(f.found[at/f.columns], f.found[shorter/f.columns]...)
		for c := range f.columns {
			other := f.next[shorter+c]
			if to := f.next[at+c]; to != 0 {
				fail[int(to)/f.columns] = other
				queue = append(queue, to)
			} else {
				f.next[at+c] = other
			}
		}
	}
	for cell, to := range f.next {
		if len(f.found[int(to)/f.columns]) > 0 {
			f.next[cell] = ^to
		}
	}
	return f
}

// Mark sets the bits of the lists that have a word in s, and clears the others. It
// reports whether there is one.
func (f *Finder) Mark(s string, marks []uint64) (found bool) {
	clear(marks)
	at := 0
	for i := range len(s) {
		next := f.next[at+int(f.classes[s[i]])]
		if next < 0 {
			next = ^next
			for _, p := range f.found[int(next)/f.columns] {
				marks[p/64] |= 1 << (p % 64)
			}
			found = true
		}
		at = int(next)
	}
	return found
}

// Has reports whether a list has a word in s.
func (f *Finder) Has(s string) bool {
	_, found := f.After(0, s)
	return found
}

// After returns the state after s was read in a state, and whether a word ended in s. After
// a word has ended, the state means nothing.
func (f *Finder) After(state int32, s string) (next int32, found bool) {
	for i := range len(s) {
		if state = f.next[int(state)+int(f.classes[s[i]])]; state < 0 {
			return 0, true
		}
	}
	return state, false
}
