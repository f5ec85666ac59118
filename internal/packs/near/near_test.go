package near

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

// slowNear is near without a bound of anything.
func slowNear(id string, ids []string) []string {
	base := path.Base(id)
	byDistance := make(map[int][]string)
	most := max(1, len(base)/3)
	for _, other := range ids {
		lower := strings.ToLower(other)
		d := min(slowDistance([]rune(base), []rune(path.Base(lower))), slowDistance([]rune(id), []rune(lower)))
		if len(base) >= 3 && strings.Contains(lower, base) {
			d = min(d, 1)
		}
		byDistance[d] = append(byDistance[d], other)
	}
	var all []string
	for d := range most + 1 {
		all = append(all, byDistance[d]...)
	}
	return all[:min(3, len(all))]
}

func slowDistance(a, b []rune) int {
	for i := range len(a) - 1 {
		swapped := slices.Clone(a)
		swapped[i], swapped[i+1] = a[i+1], a[i]
		if a[i] != a[i+1] && slices.Equal(swapped, b) {
			return 1
		}
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j-1]+cost, rows[i-1][j]+1, rows[i][j-1]+1)
		}
	}
	return rows[len(a)][len(b)]
}

// What is suggested for ids as people write them is what a whole comparison says.
func TestNearAgreesWithAFullComparison(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"billing", "invoice", "größe", "incident", "triage", "notes", "db", "a", "翻訳", "backup", "mail"}
	word := func() string { return words[random.IntN(len(words))] }
	var ids []string
	for i := range 400 {
		id := word()
		for range random.IntN(3) {
			id += []string{"/", "-", "_"}[random.IntN(3)] + word()
		}
		if i%7 == 0 {
			id = strings.ToUpper(id)
		}
		ids = append(ids, id)
	}
	found := 0
	for range 400 {
		letters := []rune(strings.ToLower(ids[random.IntN(len(ids))]))
		if len(letters) > 40 {
			continue
		}
		for range random.IntN(5) {
			switch at := random.IntN(len(letters) + 1); {
			case at+1 < len(letters) && random.IntN(3) == 0:
				letters[at], letters[at+1] = letters[at+1], letters[at]
			case random.IntN(2) == 0:
				letters = slices.Insert(letters, at, 'x')
			case at < len(letters):
				letters = slices.Delete(letters, at, at+1)
			}
		}
		got, want := Names(string(letters), ids, 3), slowNear(string(letters), ids)
		if !slices.Equal(got, want) {
			t.Errorf("Names(%q) = %q, want %q", string(letters), got, want)
		}
		if len(got) > 0 {
			found++
		}
	}
	if found < 150 {
		t.Errorf("something was near to %d ids only", found)
	}
	for _, id := range []string{"", "/", "x/", strings.Repeat("x", maxNear), "a\xff"} {
		if got, want := Names(id, ids, 3), slowNear(id, ids); !slices.Equal(got, want) {
			t.Errorf("Names(%q) = %q, want %q", id, got, want)
		}
	}
}

// Of long texts no more than their beginnings are compared, and texts of other lengths
// are not compared at all.
func TestNearIsBounded(t *testing.T) {
	r := newRuler(strings.Repeat("ab", maxNear/2), maxNear)
	r.distance(strings.Repeat("cd", maxNear/2))
	if len(r.row) > maxNearLetters+1 {
		t.Errorf("%d letters were compared, want %d at most", len(r.row)-1, maxNearLetters)
	}
	r = newRuler("short", 1)
	if d := r.distance("shorter"); d <= 1 || r.row != nil {
		t.Errorf("a text that is too long has the distance %d, and was compared: %v", d, r.row != nil)
	}
	// Rows end above the bound: at the second letter, and not at the last.
	r = newRuler("xyzxyz", 1)
	if d := r.distance("abcabc"); d != 2 || r.row[0] != 2 {
		t.Errorf("the distance is %d after %d letters, want 2 after 2", d, r.row[0])
	}
	var ids []string
	for i := range 10 {
		ids = append(ids, fmt.Sprintf("pack-%d", i))
	}
	if got := Names(strings.Repeat("x", maxNear+1), ids, 3); got != nil {
		t.Errorf("Names of a very long id are %q, want none", got)
	}
}
