package problem

import (
	"slices"
	"strings"
)

// nearest returns the candidate closest to word, if it is close enough that it
// was probably meant.
func nearest(word string, candidates []string) (string, bool) {
	word = strings.ToLower(word)
	if len(word) > 64 {
		return "", false
	}
	best, least := "", min(len(word)/3, 3)+1
	for _, c := range candidates {
		if d := distance(word, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best, best != ""
}

// distance counts the insertions, deletions, replacements and swaps of neighbors
// that turn a into b.
func distance(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// DidYouMean returns the end of a message about an unknown word. siblings are
// the words known in its place, and all are those known anywhere, by whole path.
func DidYouMean(word string, siblings, all []string) string {
	if near, ok := nearest(word, siblings); ok {
		return "; did you mean " + near + "?"
	}
	if i := slices.IndexFunc(all, func(path string) bool {
		return path[strings.LastIndexByte(path, '.')+1:] == word
	}); i >= 0 {
		return "; did you mean " + all[i] + "?"
	}
	if len(siblings) == 0 {
		return ""
	}
	return "; known here are " + strings.Join(siblings, ", ")
}
