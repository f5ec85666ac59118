package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever is added, removed and changed, the Index equals the one that New would
// make.
func TestChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%d", int(random.ExpFloat64()*40)) }
	document := func() Document {
		d := Document{Name: word() + "/" + word(), Description: word()}
		for range random.IntN(12) {
			d.Description += " " + word()
		}
		if random.IntN(2) == 0 {
			d.Tags, d.Tools = []string{word()}, []string{word() + "_" + word(), word()}
		}
		return d
	}
	docs := make([]Document, 60)
	for i := range docs {
		docs[i] = document()
	}
	x := indexOf(docs)
	for round := range 300 {
		var next []Document
		var old []int
		fresh := make(map[int]bool)
		add := func(d Document) {
			fresh[len(next)] = true
			next, old = append(next, d), append(old, -1)
		}
		rate := []int{2, 10, 1000}[round%3]
		for i, d := range docs {
			if random.IntN(rate) == 0 {
				add(document())
			}
			switch random.IntN(3 * rate) {
			case 0: // it is removed
			case 1:
				add(document())
			default:
				next, old = append(next, d), append(old, i)
			}
		}
		x = x.Changed(old, func(i int) Document {
			if !fresh[i] {
				t.Errorf("round %d: document %d is in the Index, and was asked for", round, i)
			}
			return next[i]
		})
		if docs = next; len(docs) > 200 || len(docs) < 20 {
			docs = docs[:min(len(docs), 60)]
			x = indexOf(docs)
		}
		if diff := cmp.Diff(indexOf(docs), x, cmp.AllowUnexported(Index{})); diff != "" {
			t.Fatalf("round %d: Changed (-New +it):\n%s", round, diff)
		}
	}
	none := x.Changed(nil, nil)
	if diff := cmp.Diff(indexOf(nil), none, cmp.AllowUnexported(Index{})); diff != "" {
		t.Errorf("Changed to nothing (-New +it):\n%s", diff)
	}
	all := make([]int, len(docs))
	for i := range all {
		all[i] = -1
	}
	if diff := cmp.Diff(x, none.Changed(all, func(i int) Document { return docs[i] }), cmp.AllowUnexported(Index{})); diff != "" {
		t.Errorf("Changed from nothing (-New +it):\n%s", diff)
	}
}
