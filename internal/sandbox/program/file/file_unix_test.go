//go:build unix

package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// In a folder that others may write to, or that is not the system's, no file counts
// as changeable only by root, no matter who owns it.
func TestSystemOwned(t *testing.T) {
	own := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{own, filepath.Dir(own), "/usr/there-is-no-such-file", "/proc/self/exe", "/dev/null", "/"} {
		if SystemOwned(path) {
			t.Errorf("SystemOwned(%q) = true", path)
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
		if got := SystemOwned(file); got != c.want {
			t.Errorf("%s: SystemOwned = %v, want %v", c.what, got, c.want)
		}
	}
	if SystemOwned(link) {
		t.Error("a link counts as a file")
	}
}
