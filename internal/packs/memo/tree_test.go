package memo

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// A Writer with an older tree writes the same as one without, and returns the older
// tree if nothing differs.
func TestWriterAgainstOld(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 2))
	var write func(w *Writer, random *rand.Rand, changes, depth int)
	write = func(w *Writer, random *rand.Rand, changes, depth int) {
		n := Node{Name: fmt.Sprint("d", depth), Entries: Entries(fmt.Sprintf("dsub%d/", random.IntN(9)))}
		if changes > 0 && r.IntN(changes) == 0 {
			n.Entries = "fother/"
		}
		at := w.Begin(&n)
		for range random.IntN(4) {
			if depth < 5 && (changes == 0 || r.IntN(changes) > 0) {
				write(w, random, changes, depth+1)
			}
		}
		w.End(at)
	}
	tree := func(seed uint64, old string, changes int) string {
		w := Writer{old: old}
		for range 3 { // the root, and what links lead to
			write(&w, rand.New(rand.NewPCG(seed, 1)), changes, 0)
			if changes > 0 && r.IntN(changes) == 0 {
				break
			}
		}
		return w.tree()
	}
	for seed := range uint64(300) {
		plain := tree(seed, "", 0)
		if again := tree(seed, plain, 0); unsafe.StringData(again) != unsafe.StringData(plain) || again != plain {
			t.Fatalf("seed %d: the same tree was copied, or is another", seed)
		}
		// Whatever the older tree was, even bytes that are not a valid tree.
		for i, old := range []string{tree(seed, "", 5), tree(seed, "", 50), tree(seed+1, "", 0), plain[:len(plain)/2], plain + plain, "\x00\xff"} {
			if got := tree(seed, old, 0); got != plain {
				t.Fatalf("seed %d, older tree %d: %q, want %q", seed, i, got, plain)
			}
		}
	}
}
