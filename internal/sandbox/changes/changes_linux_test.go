package changes

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestApplyAndUndo(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			s := openStore(t, nil)
			dir := t.TempDir()
			plant(t, dir, map[string]string{
				"a": "one", "b": "two", "c/d": "three", "c/e/f": "four", "gone/x": "x", "gone/y/z": "z",
				"link@": "a", "mode": "m", "swap": "file", "turn/in": "1", "touch": "t",
			})
			do(t, unix.Setxattr(filepath.Join(dir, "b"), "user.kept", []byte("v"), 0))
			before := look(t, dir)
			w := begin(t, s, format, Folder{Path: dir})
			at := func(p string) string { return filepath.Join(w.at, p) }
			do(t, os.WriteFile(at("a"), []byte("ONE"), 0o600))
			do(t, os.WriteFile(at("new"), []byte("new"), 0o755))
			do(t, os.Chmod(at("mode"), 0o755))
			do(t, os.RemoveAll(at("gone")))
			do(t, os.Rename(at("c/d"), at("moved")))
			do(t, os.MkdirAll(at("deep/er"), 0o750))
			do(t, os.WriteFile(at("deep/er/file"), []byte("x"), 0o640))
			do(t, os.Chmod(at("deep"), 0o555))
			t.Cleanup(func() { _ = os.Chmod(at("deep"), 0o755) })
			do(t, os.Remove(at("link")))
			do(t, os.Symlink("c/e/f", at("link")))
			do(t, os.Remove(at("swap")))
			do(t, os.Mkdir(at("swap"), 0o755))
			do(t, os.WriteFile(at("swap/in"), nil, 0o644))
			do(t, os.RemoveAll(at("turn")))
			do(t, os.WriteFile(at("turn"), []byte("now a file"), 0o644))
			do(t, unix.Setxattr(at("b"), "user.added", []byte("w"), 0))
			sparse, err := os.Create(at("sparse"))
			do(t, err)
			_, err = sparse.WriteAt([]byte("end"), 8<<20)
			do(t, err)
			do(t, sparse.Close())
			want := look(t, w.at)
			set := w.finish(Ending{})
			if n := set.Count(Applied); n != len(set.Changes) || n == 0 {
				t.Errorf("%d of %d applied: %v", n, len(set.Changes), states(set))
			}
			same(t, "the folder after the run", want, look(t, dir))
			var st unix.Stat_t
			do(t, unix.Stat(filepath.Join(dir, "sparse"), &st))
			if st.Blocks*512 > 1<<20 {
				t.Errorf("the hole of sparse takes %d bytes", st.Blocks*512)
			}
			undo, err := s.Undo(t.Context(), set.ID)
			do(t, err)
			if n := undo.Count(Applied); n != len(undo.Changes) {
				t.Errorf("%d of %d undone: %v", n, len(undo.Changes), undo.Changes)
			}
			same(t, "the folder after undo", before, look(t, dir))
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "deep"), 0o755) })
			redo, err := s.Undo(t.Context(), undo.ID)
			do(t, err)
			if n := redo.Count(Applied); n != len(redo.Changes) {
				t.Errorf("%d of %d done again: %v", n, len(redo.Changes), redo.Changes)
			}
			same(t, "the folder after undoing undo", want, look(t, dir))
		})
	}
}

// A run's owners are never applied. A file that replaces another keeps the old owner,
// and a new file in a set-group-ID folder gets the folder's group.
func TestOwners(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root: only root can give files away")
	}
	for _, format := range formats() {
		s, dir := openStore(t, nil), t.TempDir()
		plant(t, dir, map[string]string{"theirs": "1", "shared/": ""})
		do(t, os.Chown(filepath.Join(dir, "theirs"), 1234, 1235))
		do(t, os.Chown(filepath.Join(dir, "shared"), 0, 1236))
		do(t, os.Chmod(filepath.Join(dir, "shared"), 0o775|os.ModeSetgid))
		w := begin(t, s, format, Folder{Path: dir})
		plant(t, w.at, map[string]string{"theirs": "2", "shared/d/f": "2", "mine": "2"})
		do(t, os.Chown(filepath.Join(w.at, "mine"), 4321, 4321))
		do(t, os.Chmod(filepath.Join(w.at, "shared"), 0o750|os.ModeSetgid))
		w.finish(Ending{})
		for p, want := range map[string][2]uint32{"theirs": {1234, 1235}, "shared/d": {0, 1236}, "mine": {0, 0}} {
			var st unix.Stat_t
			do(t, unix.Stat(filepath.Join(dir, p), &st))
			if st.Uid != want[0] || st.Gid != want[1] {
				t.Errorf("%s: %q belongs to %d:%d, want %v", format, p, st.Uid, st.Gid, want)
			}
		}
		info, err := os.Stat(filepath.Join(dir, "shared"))
		do(t, err)
		if info.Mode().Perm() != 0o750 || info.Mode()&os.ModeSetgid == 0 {
			t.Errorf("%s: shared has the mode %v", format, info.Mode())
		}
	}
}
