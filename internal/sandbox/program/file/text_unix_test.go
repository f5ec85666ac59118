//go:build unix

package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestText(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"ok": 4, "large": maxText + 1, "full": maxText} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"ok": true, "full": true, "large": false, "fifo": false, ".": false, "gone": false} {
		if _, err := Text(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("Text(%q) = %v, want success %v", name, err, want)
		}
	}
}
