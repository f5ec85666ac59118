//go:build unix

package paths

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWithin(t *testing.T) {
	dir := t.TempDir()
	at := func(path string) string { return filepath.Join(dir, path) }
	for _, d := range []string{"site/sub/deep", "other"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"link": "site", "site/sub/out": "../../other", "twice": "link/sub", "loop": "loop", "dangling": "gone",
	} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		folder, dir string
		want        bool
	}{
		{"site", "site", true},
		{"site", "site/sub/deep", true},
		{"site", "link/sub", true},
		{"link", "site", true},
		{"link", "site/sub/deep", true},
		{"link/../site", "site/sub", true},
		{"twice", "site/sub/deep", true},
		{"site", "link", true},
		{"site/sub", "site", false},
		{"twice", "site", false},
		{"site", "other", false},
		{"site", "site/sub/out", false}, // it is elsewhere
		{"other", "site/sub/out", true},
		{".", "site/sub/gone", true},
		{"site", "site/sub/gone/gone", true},
		{"gone", "site", false},
		{"dangling", "site", false},
		{"file/x", "site", false},
		{"loop", "site", true}, // cannot be determined
		{"site", "loop", true},
	} {
		if got := Within(at(tt.folder), at(tt.dir)); got != tt.want {
			t.Errorf("Within(%q, %q) = %v, want %v", tt.folder, tt.dir, got, tt.want)
		}
	}
}
