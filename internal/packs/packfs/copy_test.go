package packfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCopyTo(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "b/c": "2", "b/d/e": ""})
	for _, tt := range []struct {
		name string
		make func(to string) error
		want string // path of the *WriteError; empty if none
	}{
		{"an empty directory", func(string) error { return nil }, ""},
		{"a file is there", func(to string) error { return os.WriteFile(filepath.Join(to, "a"), nil, 0o600) }, "a"},
		{"a link is there", func(to string) error { return os.Symlink("/dev/null", filepath.Join(to, "a")) }, "a"},
		{"a directory is there", func(to string) error { return os.Mkdir(filepath.Join(to, "b"), 0o700) }, "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := t.TempDir()
			t.Cleanup(func() { // nothing can be removed from a folder without write permission
				_ = filepath.WalkDir(at, func(path string, d fs.DirEntry, _ error) error {
					if d != nil && d.IsDir() {
						_ = os.Chmod(path, 0o700)
					}
					return nil
				})
			})
			if err := tt.make(at); err != nil {
				t.Skip(err)
			}
			to, err := os.OpenRoot(at)
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			got, err := open(t, dir).CopyTo(t.Context(), to)
			if tt.want != "" {
				if we, ok := errors.AsType[*WriteError](err); !ok || we.Path != tt.want {
					t.Errorf("CopyTo = %v, want a *WriteError about %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{dir, at} {
				if diff := cmp.Diff(digest(t, dir, nil), got, cmp.AllowUnexported(Tree{})); diff != "" {
					t.Errorf("CopyTo, and Digest of %q (-Digest +CopyTo):\n%s", dir, diff)
				}
			}
		})
	}
}
