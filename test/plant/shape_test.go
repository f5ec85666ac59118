package plant

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// Every written pack is served, and its only problem, as with real packs, may be
// a description that is too long. The packs have the intended shape.
func TestWrite(t *testing.T) {
	const n = 400
	root := t.TempDir()
	made, err := Write(root, 1, n)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}})
	if err != nil {
		t.Fatal(err)
	}
	attached := catalog.Attached()
	if len(attached) != n || len(made) != n {
		t.Fatalf("%d packs are attached and %d were written, want %d", len(attached), len(made), n)
	}
	var documents, descriptions, depths []int
	count := make(map[string]int)
	for _, p := range attached {
		for _, d := range p.Problems {
			if d.Code != "description-long" {
				t.Errorf("pack %q: %v", p.ID, d)
			}
		}
		info, err := os.Stat(filepath.Join(p.Dir, p.Entry))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, int(info.Size()))
		descriptions = append(descriptions, len(p.Description))
		depths = append(depths, strings.Count(p.ID, "/"))
		if len(p.ToolFiles) > 0 {
			count["tools"]++
		}
		if len(p.Tags()) > 0 {
			count["tags"]++
		}
		if strings.ContainsFunc(p.Description, func(r rune) bool { return r > 127 }) {
			count["not ASCII"]++
		}
	}
	for _, tc := range []struct {
		what      string
		got       []int
		low, high int // of the median
	}{
		{"size of a document", documents, 6_500, 8_700},
		{"length of a description", descriptions, 200, 270},
		{"folders above", depths, 2, 3},
	} {
		slices.Sort(tc.got)
		if m := tc.got[n/2]; m < tc.low || m > tc.high {
			t.Errorf("%s: the median is %d, want %d to %d", tc.what, m, tc.low, tc.high)
		}
	}
	for what, want := range map[string][2]int{"tools": {n / 4, n / 4}, "tags": {n / 20, n / 5}, "not ASCII": {n / 16, n / 4}} {
		if got := count[what]; got < want[0] || got > want[1] {
			t.Errorf("%s: %d of %d packs, want %d to %d", what, got, n, want[0], want[1])
		}
	}
}
