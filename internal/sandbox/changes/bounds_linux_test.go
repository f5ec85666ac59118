package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A layer whose changes would take gigabytes of memory is dropped: links of
// 4,000 bytes that are not UTF-8 take eight times that in a journal.
func TestBoundOfText(t *testing.T) {
	s, dir := openStore(t, nil), t.TempDir()
	w := begin(t, s, "copy", Folder{Path: dir})
	target := strings.Repeat("\xff", 4000)
	for i := range 2500 {
		do(t, os.Symlink(target, filepath.Join(w.at, fmt.Sprint(i))))
	}
	sets, err := w.turn.Finish(t.Context(), Ending{}, w.layer)
	if err == nil || !strings.Contains(err.Error(), "take more than 64 MiB") || len(sets) != 0 {
		t.Errorf("Finish = %d sets, %v; want none, and an error", len(sets), err)
	}
}

// A change whose path the system cannot open is refused, with all below it; the rest
// is applied.
func TestBoundOfPaths(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			s, dir := openStore(t, nil), t.TempDir()
			w := begin(t, s, format, Folder{Path: dir})
			do(t, os.WriteFile(filepath.Join(w.at, "short"), nil, 0o600))
			at, err := unix.Open(w.at, unix.O_DIRECTORY, 0)
			do(t, err)
			name := strings.Repeat("d", 250)
			for range 30 {
				do(t, unix.Mkdirat(at, name, 0o700))
				next, err := unix.Openat(at, name, unix.O_DIRECTORY, 0)
				do(t, err)
				do(t, unix.Close(at))
				at = next
			}
			do(t, unix.Mkdirat(at, "f", 0o700))
			do(t, unix.Close(at))
			refused := 0
			for _, c := range w.finish(Ending{}).Changes {
				if c.State == Refused {
					refused++
				}
			}
			if refused != 1 {
				t.Errorf("%d changes are refused, want the first folder whose path is too long", refused)
			}
			if _, err := os.Stat(filepath.Join(dir, "short")); err != nil {
				t.Errorf("the file with a short path is not there: %v", err)
			}
		})
	}
}

// Holes take no space in a layer, but are hashed like data: a bound only for each
// file would let a run keep its turn for days.
func TestBoundOfHoles(t *testing.T) {
	s, dir := openStore(t, nil), t.TempDir()
	w := begin(t, s, "copy", Folder{Path: dir})
	for _, name := range []string{"a", "b", "c"} {
		f, err := os.Create(filepath.Join(w.at, name))
		do(t, err)
		do(t, f.Truncate(400<<20))
		do(t, f.Close())
	}
	got := states(w.finish(Ending{}))
	for name, want := range map[string]string{"a": "create applied", "b": "create applied", "c": "create refused special"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
