package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
)

// An Index that was stored is the same as before.
func TestStored(t *testing.T) {
	for name, docs := range map[string][]Document{"nothing": nil, "a shelf": shelf, "no words": {{}, {}}, "many": among(common, 1_000)} {
		x := indexOf(docs)
		from := packed.From(string(x.Append([]byte("before"))) + "after")
		from.Bytes(len("before"))
		got, err := Read(&from)
		if err != nil || from.Rest() != "after" {
			t.Fatalf("%s: Read = %v, leaving %.20q", name, err, from.Rest())
		}
		if diff := cmp.Diff(x, got, cmp.AllowUnexported(Index{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-stored +read):\n%s", name, diff)
		}
	}
}

// Whatever is stored is refused, or is an Index that can be searched and changed.
func TestStoredAndDamaged(t *testing.T) {
	good := indexOf(shelf).Append(nil)
	refused := 0
	check := func(bad []byte) {
		from := packed.From(string(bad))
		x, err := Read(&from)
		if err != nil {
			refused++
			return
		}
		found(x, "refund deplyo 文書 to a") // it does not panic
		old := make([]int, len(x.lengths))
		for i := range old {
			old[i] = i
		}
		if diff := cmp.Diff(x, x.Changed(old, nil), cmp.AllowUnexported(Index{})); diff != "" {
			t.Errorf("Changed nothing (-before +after):\n%s", diff)
		}
	}
	for i := range good {
		check(good[:i])
		if refused != i+1 {
			t.Fatalf("the first %d of %d bytes are not refused", i, len(good))
		}
	}
	for i := range good {
		for _, flip := range []byte{0x01, 0x02, 0x10, 0x80, 0xff} {
			bad := append([]byte(nil), good...)
			bad[i] ^= flip
			check(bad)
		}
	}
	if flips := refused - len(good); flips < len(good) {
		t.Errorf("%d changes of %d bytes are refused, want most", flips, len(good))
	}
}
