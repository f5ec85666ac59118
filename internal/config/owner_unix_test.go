//go:build unix

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The person who writes the file decides which packs are trusted.
func TestLoadWritableByOthers(t *testing.T) {
	chmod := func(mode fs.FileMode) func(*Options) {
		return func(o *Options) {
			if err := os.Chmod(o.File, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := load(t, "mode: Work\n", chmod(0o666)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("Load of a file with mode 666 = %v, want it to say chmod", err)
	}
	if _, _, err := load(t, "mode: Work\n", chmod(0o644)); err != nil {
		t.Errorf("Load of a file with mode 644 = %v", err)
	}

	// A link is fine; the file that it leads to is checked.
	link := func(mode fs.FileMode) func(*Options) {
		return func(o *Options) {
			chmod(mode)(o)
			name := filepath.Join(filepath.Dir(o.File), "link.yaml")
			if err := os.Symlink(o.File, name); err != nil {
				t.Fatal(err)
			}
			o.File = name
		}
	}
	if c, _, err := load(t, "mode: Work\n", link(0o600)); err != nil || c.Mode != "Work" {
		t.Errorf("Load of a link = %v", err)
	}
	if _, _, err := load(t, "mode: Work\n", link(0o666)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("Load of a link to a file with mode 666 = %v, want it to say chmod", err)
	}
}
