//go:build unix

package capture

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpillReplaced(t *testing.T) {
	tests := []struct {
		name string
		do   func(dir string) error
		want string // NotKept
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"removed", func(dir string) error { return os.Remove(filepath.Join(dir, Dir, "r.stdout")) }, "the program replaced the file"},
		{"linked", func(dir string) error {
			return os.Link(filepath.Join(dir, Dir, "r.stdout"), filepath.Join(dir, "x"))
		}, "the program replaced the file"},
		{"folder moved", func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, Dir), filepath.Join(dir, "x")), os.Symlink("x", filepath.Join(dir, Dir)))
		}, "the program replaced the file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			b := buffer{limit: 10, spill: &spill{root: root, name: Dir + "/r.stdout"}}
			b.write([]byte(strings.Repeat("x", 20)))
			if err := tt.do(dir); err != nil {
				t.Fatal(err)
			}
			b.write([]byte("y"))
			if c := b.capture(); c.NotKept != tt.want || (c.File != "") != (tt.want == "") {
				t.Errorf("File, NotKept = %q, %q, want %q", c.File, c.NotKept, tt.want)
			}
		})
	}
}
