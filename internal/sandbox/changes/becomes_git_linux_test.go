package changes

import (
	"os"
	"path/filepath"
	"testing"
)

// Parts of a git folder are each harmless alone. A person who undoes one set or
// applies two must not create a git folder from them.
func TestBecomesGit(t *testing.T) {
	run := func(t *testing.T, s *Store, dir string, end Ending, do func(at string)) *Set {
		t.Helper()
		w := begin(t, s, "copy", Folder{Path: dir})
		do(w.at)
		set := w.finish(end)
		if err := w.turn.Close(); err != nil {
			t.Fatal(err)
		}
		return set
	}
	write := func(files map[string]string) func(string) {
		return func(at string) { plant(t, at, files) }
	}
	head := map[string]string{"foo/HEAD": "ref: refs/heads/main\n", "foo/refs/x": "", "foo/config": "fsmonitor = evil\n"}
	harmless := func(t *testing.T, dir string) {
		t.Helper()
		for _, name := range []string{"HEAD", "objects", "refs"} {
			if _, err := os.Lstat(filepath.Join(dir, "foo", name)); err != nil {
				return
			}
		}
		t.Error("foo is a git folder now")
	}

	t.Run("undo", func(t *testing.T) {
		s, dir := openStore(t, nil), t.TempDir()
		run(t, s, dir, Ending{}, write(head))
		second := run(t, s, dir, Ending{}, func(at string) { do(t, os.RemoveAll(filepath.Join(at, "foo/refs"))) })
		run(t, s, dir, Ending{}, write(map[string]string{"foo/objects/x": ""}))
		undone, err := s.Undo(t.Context(), second.ID)
		do(t, err)
		if got := states(undone)["foo/refs"]; got != "mkdir refused git" {
			t.Errorf("foo/refs is %q, want it refused", got)
		}
		harmless(t, dir)
	})

	t.Run("apply", func(t *testing.T) {
		s, dir := openStore(t, nil), t.TempDir()
		first := run(t, s, dir, Ending{Killed: "a test"}, write(head))
		second := run(t, s, dir, Ending{Killed: "a test"}, write(map[string]string{"foo/objects/x": "", "ok": ""}))
		if _, err := s.Apply(t.Context(), first.ID, ""); err != nil {
			t.Fatal(err)
		}
		applied, err := s.Apply(t.Context(), second.ID, "")
		do(t, err)
		if got := states(applied); got["foo/objects"] != "mkdir refused git" || got["ok"] != "create applied" {
			t.Errorf("states = %v, want foo/objects refused and ok applied", got)
		}
		harmless(t, dir)
	})

	t.Run("undo in a git folder", func(t *testing.T) { // of a set that a person applied there
		s, dir := openStore(t, nil), t.TempDir()
		plant(t, dir, map[string]string{".git/HEAD": "x", ".git/objects/": "", ".git/refs/": "", ".git/config": "mine\n"})
		set := run(t, s, dir, Ending{}, write(map[string]string{".git/config": "run\n"}))
		applied, err := s.Apply(t.Context(), set.ID, "")
		do(t, err)
		_, err = s.Undo(t.Context(), applied.ID)
		do(t, err)
		if got, err := os.ReadFile(filepath.Join(dir, ".git/config")); string(got) != "mine\n" {
			t.Errorf(".git/config = %q, %v; want the user's", got, err)
		}
	})
}
