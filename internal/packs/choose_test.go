package packs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
)

func TestWith(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "---\nname: " + name + "\ndescription: About " + name + ".\n---\n"
		if err := os.WriteFile(filepath.Join(root, name, "SKILL.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Scan(t.Context(), Options{Roots: []Root{{Dir: root, Trust: TrustUser, Attach: []string{"a", "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := func(id string) string {
		p, err := c.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		return p.Dir
	}
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name   string
		change func(*attach.Set)
		want   []string
	}{
		{"nothing", func(*attach.Set) {}, []string{"a", "b"}},
		{"attach", func(s *attach.Set) { s.Attach("c", attach.Entry{Dir: dir("c"), Since: now}) }, []string{"a", "b", "c"}},
		{"attach another directory", func(s *attach.Set) { s.Attach("c", attach.Entry{Dir: root, Since: now}) }, []string{"a", "b"}},
		{"detach", func(s *attach.Set) { s.Detach("a", now) }, []string{"b"}},
		{"attach again", func(s *attach.Set) { s.Detach("a", now); s.Attach("a", attach.Entry{Dir: dir("a"), Since: now}) }, []string{"a", "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var set attach.Set
			tt.change(&set)
			view := c.With(set)
			var got []string
			for _, p := range view.Attached() {
				got = append(got, p.ID)
				if q, err := view.LookupAttached(p.ID); err != nil || q != p {
					t.Errorf("LookupAttached(%q) = %v, %v, want %v", p.ID, q, err, p)
				}
				if e, ok := set.Attached[p.ID]; ok && !p.AttachedSince.Equal(e.Since) {
					t.Errorf("%s is attached since %v, want %v", p.ID, p.AttachedSince, e.Since)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("attached (-want +got):\n%s", diff)
			}
			if n := len(c.Attached()); n != 2 {
				t.Errorf("the Catalog itself has %d packs attached, want 2", n)
			}
		})
	}
}
