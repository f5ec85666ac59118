//go:build unix

package paths

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Below agrees with filepath.Rel, even for paths that are not clean.
func TestBelow(t *testing.T) {
	names := []string{"/", "/a", "/a/", "/a/b", "/ab", "/a/../ab", "/a/./b", "/a//b", "//a/b", "/a/.", "/a/..", "/a/b/..", "/./a", "/../a", "/a/..b", "/a/.b", "/a/b/c", "/A/b", "a", "a/b", ".", "..", ""}
	for _, dir := range names {
		for _, path := range names {
			want, err := filepath.Rel(dir, path)
			there := err == nil && filepath.IsLocal(want)
			if got, ok := Below(dir, path); ok != there || ok && got != want {
				t.Errorf("Below(%q, %q) = %q, %v, want %q, %v", dir, path, got, ok, want, there)
			}
		}
	}
}

func BenchmarkBelow(b *testing.B) {
	dir, path := "/home/someone/.local/state/packs-mcp", "/home/someone/packs/"+strings.Repeat("folder/", 5)+"pack"
	for b.Loop() {
		Below(dir, path)
	}
}

// WithoutLinks follows links as far as the path exists.
func TestWithoutLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "real", "dangling": "nothing", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"real": "real", "link": "real", "link/a": "real/a", "link/a/b/c": "real/a/b/c", "real/../link/a": "real/a", "nothing/a": "nothing/a",
		"dangling": "dangling", "dangling/a": "dangling/a", "loop/a/b": "loop/a/b", ".": ".",
	} {
		if got := WithoutLinks(dir + "/" + path); got != filepath.Join(dir, want) {
			t.Errorf("WithoutLinks(%q) = %q, want %q", path, got, want)
		}
	}
	if got := WithoutLinks("not/there"); got != "not/there" {
		t.Errorf("WithoutLinks of a relative path = %q", got)
	}
}
