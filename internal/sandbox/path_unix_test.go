//go:build unix

package sandbox

import (
	"errors"
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
		{"loop", "site", true}, // nobody can tell
		{"site", "loop", true},
	} {
		if got := Within(at(tt.folder), at(tt.dir)); got != tt.want {
			t.Errorf("Within(%q, %q) = %v, want %v", tt.folder, tt.dir, got, tt.want)
		}
	}
}

// A file in a folder that anybody may write to, or that is not the system's, can be
// changed by others than root, even if root owns the file.
func TestSystemOwned(t *testing.T) {
	own := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{own, filepath.Dir(own), "/usr/there-is-no-such-file", "/proc/self/exe", "/dev/null", "/"} {
		if systemOwned(path) {
			t.Errorf("systemOwned(%q) = true", path)
		}
	}
	if os.Getuid() != 0 {
		return
	}
	dir, err := os.MkdirTemp("/opt", "packs-mcp-test-")
	if err != nil {
		t.Skipf("a folder of the system's cannot be made: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("f", link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"root's alone", func() error { return nil }, true},
		{"the group may write", func() error { return os.Chmod(file, 0o775) }, false},
		{"everybody may write", func() error { return os.Chmod(file, 0o757) }, false},
		{"root's alone again", func() error { return os.Chmod(file, 0o755) }, true},
		{"in a sticky folder for everybody", func() error { return os.Chmod(dir, os.ModeSticky|0o777) }, false},
		{"in a folder of another user", func() error { return errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, 65534, 0)) }, false},
		{"another user's", func() error { return errors.Join(os.Chown(dir, 0, 0), os.Chown(file, 65534, 0)) }, false},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		if got := systemOwned(file); got != c.want {
			t.Errorf("%s: systemOwned = %v, want %v", c.what, got, c.want)
		}
	}
	if systemOwned(link) {
		t.Error("a link counts as a file")
	}
}
