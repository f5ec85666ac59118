//go:build unix

package paths

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTrail(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"a/up": "../a/./file", "b": "a", "c": "./b/", "loop": "loop", "gone": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	below := func(names []string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		slices.Sort(paths)
		return paths
	}
	for path, want := range map[string]struct{ stops, links []string }{
		"a/file":      {[]string{"a/file"}, nil},
		"a/../a/file": {[]string{"a/file"}, nil},
		"a/up":        {[]string{"a/up", "a/file"}, []string{"a/up"}},
		"c/up":        {[]string{"a/up", "a/file"}, []string{"c", "b", "a/up"}},
		"c":           {[]string{"c", "b", "a"}, []string{"c", "b"}},
		"loop":        {},
		"gone":        {},
		"missing":     {},
		"a/file/x":    {},
	} {
		stops, links := Trail(filepath.Join(dir) + "/" + path)
		var paths []string
		for _, l := range links {
			paths = append(paths, l.Path)
		}
		slices.Sort(stops)
		slices.Sort(paths)
		if diff := cmp.Diff(below(want.stops), stops, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("stops of %q differ (-want +got):\n%s", path, diff)
		}
		if diff := cmp.Diff(below(want.links), paths, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("links of %q differ (-want +got):\n%s", path, diff)
		}
	}
}
