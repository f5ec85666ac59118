package changes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// rounds returns how often a test repeats itself: n, or CHANGES_TEST_ROUNDS.
func rounds(t testing.TB, n int) int {
	if text := os.Getenv("CHANGES_TEST_ROUNDS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		do(t, err)
	}
	return n
}

// A gardener changes a tree at random.
type gardener struct {
	t     testing.TB
	rnd   *rand.Rand
	dir   string
	setID bool   // also set-ID files, which undo does not restore
	away  string // a file elsewhere, which links lead to
}

func (g *gardener) name() string {
	names := []string{
		"a", "b", "c", "d", "e", "with space", "-dash", "..dots", "tilde~", ".hidden", "é", "e\u0301", "日本", "\xff\xfe", "UPPER", "upper",
		"CLAUDE.md", ".envrc", ".git", "HEAD", "objects", "refs", "commondir", ".vscode", "back\\slash", "colon:x",
	}
	return names[g.rnd.IntN(len(names))]
}

// path returns a path whose folders exist or may be made.
func (g *gardener) path() string {
	at := g.dir
	for g.rnd.IntN(3) > 0 {
		entries, err := os.ReadDir(at)
		if err != nil || len(entries) == 0 {
			break
		}
		e := entries[g.rnd.IntN(len(entries))]
		if !e.IsDir() {
			break
		}
		at = filepath.Join(at, e.Name())
	}
	return filepath.Join(at, g.name())
}

// existing returns the path of something that exists.
func (g *gardener) existing() string {
	var all []string
	_ = filepath.WalkDir(g.dir, func(p string, _ os.DirEntry, err error) error {
		if p != g.dir && err == nil {
			all = append(all, p)
		}
		return nil
	})
	if len(all) == 0 {
		return g.path()
	}
	return all[g.rnd.IntN(len(all))]
}

func (g *gardener) content() []byte {
	b := make([]byte, g.rnd.IntN(3000))
	for i := range b {
		b[i] = byte(g.rnd.IntN(4))
	}
	return b
}

// write writes a file, even through a link to another file in the folder. Through any other
// link it would write to this machine's files.
func (g *gardener) write(p string, mode os.FileMode) {
	if info, err := os.Lstat(p); err == nil && info.Mode()&os.ModeSymlink != 0 {
		dir, err := filepath.EvalSymlinks(g.dir)
		do(g.t, err)
		if to, err := filepath.EvalSymlinks(p); err != nil || !strings.HasPrefix(to, dir+"/") {
			return
		}
	}
	_ = os.WriteFile(p, g.content(), mode)
}

// step makes one change, unless the system refuses it.
func (g *gardener) step() {
	switch g.rnd.IntN(15) {
	case 0, 1, 2:
		g.write(g.path(), []os.FileMode{0o600, 0o644, 0o755, 0o444}[g.rnd.IntN(4)])
	case 3:
		g.write(g.existing(), 0o644)
	case 4:
		_ = os.MkdirAll(g.path(), []os.FileMode{0o755, 0o700, 0o775}[g.rnd.IntN(3)])
	case 5:
		_ = os.RemoveAll(g.existing())
	case 6, 7: // folders cannot be renamed in every layer
		_ = os.Rename(g.existing(), g.path())
	case 8:
		_ = os.Symlink([]string{"a", "b/c", "../a", "../../x", g.away, "CLAUDE.md", "."}[g.rnd.IntN(7)], g.path())
	case 9:
		if p := g.existing(); !isLink(p) {
			if mode := []os.FileMode{0o600, 0o644, 0o755, 0o500 | os.ModeSticky, 0o755 | os.ModeSetuid}[g.rnd.IntN(5)]; g.setID || mode&os.ModeSetuid == 0 {
				if info, err := os.Lstat(p); err == nil && info.IsDir() {
					mode |= 0o700 // so that users other than root can enter it
				}
				_ = os.Chmod(p, mode)
			}
		}
	case 10:
		if p := g.existing(); !isLink(p) {
			_ = unix.Lsetxattr(p, "user."+string(rune('a'+g.rnd.IntN(3))), g.content()[:0], 0)
		}
	case 11:
		if f, err := os.OpenFile(g.path(), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644); err == nil {
			_, _ = f.WriteAt([]byte("far"), int64(g.rnd.IntN(1<<20)))
			_ = f.Close()
		}
	case 12:
		_ = os.Link(g.existing(), g.path())
	case 13: // saves by renaming
		p := g.existing()
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
			g.write(p+"~", 0o644)
			_ = os.Rename(p+"~", p)
		}
	case 14: // a folder is made anew
		if p := g.existing(); !isLink(p) {
			if info, err := os.Lstat(p); err == nil && info.IsDir() {
				_ = os.RemoveAll(p)
				_ = os.Mkdir(p, 0o755)
				_ = os.WriteFile(filepath.Join(p, g.name()), g.content(), 0o644)
			}
		}
	}
}

func isLink(p string) bool {
	info, err := os.Lstat(p)
	return err != nil || info.Mode()&os.ModeSymlink != 0
}

// Afterwards, the folder is as before plus exactly the applied changes; the user's
// own changes stay; undo restores the first state.
func TestProperty(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			for round := range rounds(t, 40) {
				seed := uint64(round) + 1
				if !t.Run(fmt.Sprint(seed), func(t *testing.T) { property(t, format, seed) }) {
					return
				}
			}
		})
	}
}

func property(t *testing.T, format string, seed uint64) {
	s, dir := openStore(t, nil), t.TempDir()
	rnd := rand.New(rand.NewPCG(seed, 0))
	g := &gardener{t: t, rnd: rnd, dir: dir, away: filepath.Join(t.TempDir(), "away")}
	plant(t, filepath.Dir(g.away), map[string]string{"away": "not ours"})
	defer func() {
		if b, err := os.ReadFile(g.away); err != nil || string(b) != "not ours" {
			t.Errorf("a file elsewhere that links lead to is %q, %v", b, err)
		}
	}()
	for range 60 {
		g.step()
	}
	w := begin(t, s, format, Folder{Path: dir})
	g.dir, g.setID = w.at, true
	for range 30 {
		g.step()
	}
	run := look(t, w.at)
	w.done()
	first := look(t, dir)
	g.dir, g.setID = dir, false
	for range seed % 3 * 3 { // the user, meanwhile
		g.step()
	}
	user := look(t, dir)
	set := w.finish(Ending{})
	after := look(t, dir)
	of := map[string][]Change{}
	for _, c := range set.Changes {
		of[c.Path] = append(of[c.Path], c)
	}
	paths := map[string]bool{}
	for _, m := range []map[string]string{run, user, after} {
		for p := range m {
			paths[p] = true
		}
	}
	for p := range paths {
		applied := len(of[p]) > 0
		removed := false
		for _, c := range of[p] {
			applied = applied && c.State == Applied
			removed = removed || c.State == Applied && (c.Kind == KindRemove || c.Kind == KindRmdir)
		}
		want := user[p]
		switch {
		case applied:
			want = run[p]
		case removed:
			want = ""
		}
		if after[p] != want {
			t.Errorf("%q is %q, want %q (user %q, run %q; %v)", p, after[p], want, user[p], run[p], of[p])
		}
		if user[p] != first[p] && user[p] != "" && user[p] != after[p] {
			t.Errorf("%q: the user made it %q, and it is %q (%v)", p, user[p], after[p], of[p])
		}
		if slices.ContainsFunc(strings.Split(p, "/"), func(n string) bool { return n == "CLAUDE.md" || n == ".envrc" || n == ".git" || n == ".vscode" }) &&
			after[p] != user[p] {
			t.Errorf("the protected %q is %q, was %q", p, after[p], user[p])
		}
	}
	if set.Count(Applied) == 0 {
		return
	}
	undo, err := s.Undo(t.Context(), set.ID)
	do(t, err)
	if undo.Count(Applied) != len(undo.Changes) {
		t.Errorf("not all was undone: %+v", undo.Changes)
	}
	same(t, "after undo", user, look(t, dir))
}

// A program that keeps exchanging folders for links never causes a write outside,
// whatever happens to the changes.
func TestEnemy(t *testing.T) {
	outside := t.TempDir()
	plant(t, outside, map[string]string{"x/f": "outside", "x/g": "outside"})
	before := look(t, outside)
	for round := range rounds(t, 20) {
		s, dir := openStore(t, nil), t.TempDir()
		plant(t, dir, map[string]string{"d/x/f": "1", "d/x/g": "1", "d/x/r/s": "1"})
		w := begin(t, s, formats()[round%2], Folder{Path: dir})
		plant(t, w.at, map[string]string{"d/x/f": "2", "d/x/new": "2", "d/x/n/m": "2"})
		do(t, os.Remove(filepath.Join(w.at, "d/x/g")))
		do(t, os.RemoveAll(filepath.Join(w.at, "d/x/r")))
		w.done()
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			real, link := filepath.Join(dir, "d"), filepath.Join(dir, "l")
			_ = os.Symlink(outside, link)
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, real, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
				}
			}
		}()
		_, err := w.turn.Finish(t.Context(), Ending{}, w.layer) // it may fail
		close(stop)
		<-stopped
		if err != nil && !strings.Contains(err.Error(), "were not applied") {
			t.Error(err)
		}
		do(t, w.turn.Close())
		same(t, "outside", before, look(t, outside))
	}
}

// A user's program that keeps saving a file never loses its last save.
func TestBusyUser(t *testing.T) {
	for round := range rounds(t, 20) {
		s, dir := openStore(t, nil), t.TempDir()
		plant(t, dir, map[string]string{"f": "1"})
		w := begin(t, s, "copy", Folder{Path: dir})
		plant(t, w.at, map[string]string{"f": "run"})
		stop, last := make(chan struct{}), make(chan string)
		go func() {
			text := "1"
			for i := 0; ; i++ {
				select {
				case <-stop:
					last <- text
					return
				default:
				}
				time.Sleep(time.Duration(round) * 50 * time.Microsecond)
				text = fmt.Sprintf("user %d", i)
				tmp := filepath.Join(dir, "f.tmp")
				if os.WriteFile(tmp, []byte(text), 0o644) != nil || os.Rename(tmp, filepath.Join(dir, "f")) != nil {
					text = "failed"
				}
			}
		}()
		time.Sleep(2 * time.Millisecond)
		set := w.finish(Ending{})
		close(stop)
		want := <-last
		data, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || string(data) != want {
			t.Errorf("f holds %q, %v, want %q; %v", data, err, want, states(set))
		}
	}
}
