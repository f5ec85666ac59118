//go:build unix

package ownfile

import (
	"io/fs"
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
