package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// What has a path that the system cannot open is refused, with all below it;
// the rest is applied.
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

// Holes take no room in a layer, and are hashed all the same: a bound for each
// file alone would let a run keep its turn for days.
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

// What a run left in one set does not make the next one's slower: the bytes of
// all sets are known without reading their changes.
func TestHeads(t *testing.T) {
	s, dir := openStore(t, nil), t.TempDir()
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"CLAUDE.md": "obey", "\xff": ""})
	set := w.finish(Ending{})
	do(t, w.turn.Close())
	whole, err := s.load(set.ID)
	do(t, err)
	head, err := s.loadHead(set.ID)
	do(t, err)
	if len(head.Ops) != 0 || len(whole.Ops) != 2 {
		t.Errorf("the head has %d ops and the record %d, want 0 and 2", len(head.Ops), len(whole.Ops))
	}
	whole.Ops = nil
	if diff := cmp.Diff(whole, head, cmp.AllowUnexported(record{})); diff != "" {
		t.Errorf("the head differs from the record (-record +head):\n%s", diff)
	}
	name := filepath.Join(s.dir(set.ID), recordName)
	data, err := os.ReadFile(name)
	do(t, err)
	do(t, os.WriteFile(name, data[:len(data)-len(data)/4], 0o600)) // the changes are cut off
	if _, err := s.load(set.ID); err == nil {
		t.Error("a record that is cut off is read")
	}
	if got := s.used(); got != whole.Bytes || got == 0 {
		t.Errorf("used = %d, want %d, without reading the changes", got, whole.Bytes)
	}
}
