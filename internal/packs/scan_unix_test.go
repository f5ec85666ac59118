//go:build unix

package packs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A FIFO in the place of a document keeps nobody waiting.
func TestFIFO(t *testing.T) {
	dir := writeTree(t, "-- b/SKILL.md --\nPACK b\n-- a/x --\n-- c/x --\n")
	for _, name := range []string{"a/SKILL.md", "c/README.md"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Skipf("fifo: %v", err)
		}
	}
	want := []string{"a = a/SKILL.md invalid entry-unreadable", "b = b/SKILL.md"}
	if diff := cmp.Diff(want, describe(scan(t, Options{Roots: []Root{{Dir: dir}}}), dir)); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
}

func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := writeTree(t, "-- a/SKILL.md --\nPACK a\n-- b/SKILL.md --\nPACK b\n-- c/SKILL.md --\nPACK c\n")
	for _, name := range []string{"a", "b/SKILL.md"} {
		file := filepath.Join(dir, name)
		if err := os.Chmod(file, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(file, 0o755) })
	}
	want := []string{"b = b/SKILL.md invalid entry-unreadable", "c = c/SKILL.md", "! root-unreadable"}
	if diff := cmp.Diff(want, describe(scan(t, Options{Roots: []Root{{Dir: dir}}}), dir)); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
}
