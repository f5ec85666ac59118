// Package near finds the names that somebody may have meant by a mistyped one.
package near

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what is compared with all other ids.
const (
	maxNear        = 256 // bytes: nothing is near to a longer id
	maxNearLetters = 64  // of each, between what is the same in both
)

// Names returns the names that somebody who wrote name may have meant: at most most of
// them, the nearest first. Letter case does not matter. Names may be paths; then the
// last segment alone may match.
func Names(name string, names []string, most int) []string {
	id := strings.ToLower(name)
	type candidate struct {
		id       string
		distance int
	}
	if len(id) > maxNear {
		return nil
	}
	var found []candidate
	base := path.Base(id)
	enough := max(1, len(base)/3)
	ofBase, ofID := newRuler(base, enough), newRuler(id, enough)
	for _, other := range names {
		lower := strings.ToLower(other)
		d := min(ofBase.distance(lower[strings.LastIndexByte(lower, '/')+1:]), ofID.distance(lower))
		if len(base) >= 3 && strings.Contains(lower, base) {
			d = min(d, 1)
		}
		if d <= enough {
			found = append(found, candidate{other, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var best []string
	for _, f := range found[:min(most, len(found))] {
		best = append(best, f.id)
	}
	return best
}

// A ruler measures how far texts are from one, up to a bound. It is for one goroutine.
type ruler struct {
	all   []rune // that text
	bound int
	to    []rune
	row   []int
}

func newRuler(from string, bound int) *ruler {
	return &ruler{all: []rune(from), bound: bound}
}

// distance returns how many letters must be added, removed or replaced to turn one text
// into the other (Levenshtein). Texts that differ only in the order of two neighboring
// letters have distance 1, since that is one slip of the fingers. Above the bound, the
// result is only known to be above it. Only a part of a long text is compared.
func (r *ruler) distance(text string) int {
	if d := len(r.all) - utf8.RuneCountInString(text); d > r.bound || -d > r.bound {
		return r.bound + 1
	}
	r.to = r.to[:0]
	for _, letter := range text {
		r.to = append(r.to, letter)
	}
	from, to := differing(r.all, r.to)
	if len(from) == 2 && len(to) == 2 && from[0] == to[1] && from[1] == to[0] {
		return 1
	}
	from, to = from[:min(len(from), maxNearLetters)], to[:min(len(to), maxNearLetters)]
	r.row = r.row[:0]
	for j := range len(to) + 1 {
		r.row = append(r.row, j)
	}
	for i, letter := range from {
		diagonal := r.row[0]
		r.row[0] = i + 1
		least := i + 1
		for j, other := range to {
			cost := diagonal
			if letter != other {
				cost++
			}
			diagonal = r.row[j+1]
			r.row[j+1] = min(cost, r.row[j]+1, diagonal+1)
			least = min(least, r.row[j+1])
		}
		if least > r.bound {
			return least // it never gets less
		}
	}
	return r.row[len(to)]
}

// differing removes the common prefix and suffix.
func differing(a, b []rune) ([]rune, []rune) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}
