//go:build unix

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNotOurMode(t *testing.T) {
	const me, private, staff, another = 1000, 1000, 20, 1001
	tests := []struct {
		mode         fs.FileMode
		owner, group uint32
		want         string // empty: fine
	}{
		{0o600, me, private, ""},
		{0o644, me, staff, ""},
		{0o444, 0, 0, ""},
		{0o664, me, private, ""},
		{0o664, 0, 0, ""},
		{0o664, me, staff, "chmod g-w"},
		{0o664, 0, staff, "chmod g-w"},
		{0o666, me, private, "chmod 600"},
		{0o602, me, private, "chmod 600"},
		{0o646, 0, 0, "chmod 600"},
		{0o600, another, private, "another user"},
		{0o444, another, another, "chmod 600"},
	}
	for _, tt := range tests {
		got := notOurMode(tt.mode, tt.owner, tt.group, me)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("notOurMode(%04o, %d, %d) = %q, want %q", tt.mode, tt.owner, tt.group, got, tt.want)
		}
	}
}

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
