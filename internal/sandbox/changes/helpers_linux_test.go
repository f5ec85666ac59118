package changes

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// missing skips the test, unless PACKS_MCP_REQUIRE has the name.
func missing(t testing.TB, name, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), name) {
		t.Fatalf("%s: required by PACKS_MCP_REQUIRE, but %s", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}

func openStore(t testing.TB, change func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: filepath.Join(t.TempDir(), "state")}
	if change != nil {
		change(&o)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// formats returns the two kinds of layers; tests make real ones. A test of the last
// kind is skipped where that does not work.
func formats() []string { return []string{"copy", "overlay"} }

// A world is one of the user's folders with a layer in which a run works.
type world struct {
	t      testing.TB
	store  *Store
	format string
	dir    string // the user's
	turn   *Turn
	at     string // where the run sees the folder
	layer  Layer
	done   func()
}

// begin takes the turn in dir and makes a layer.
func begin(t testing.TB, s *Store, format string, dir Folder) *world {
	t.Helper()
	w := &world{t: t, store: s, format: format, dir: dir.Path, done: func() {}}
	turn, err := s.Begin(t.Context(), Run{ID: "r1", Pack: "p", Tool: "t"}, nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	w.turn = turn
	t.Cleanup(func() { _ = turn.Close() })
	tmp := t.TempDir()
	w.at = filepath.Join(tmp, "at")
	if err := os.Mkdir(w.at, 0o700); err != nil {
		t.Fatal(err)
	}
	if format == "copy" {
		to, err := os.Open(w.at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.Close() })
		c, err := turn.Copy(t.Context(), 0, to, CopyLimits{})
		if err != nil {
			t.Fatal(err)
		}
		w.layer = Layer{Dir: to, Copy: c}
		return w
	}
	mem := filepath.Join(tmp, "mem")
	if err := os.Mkdir(mem, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", mem, "tmpfs", 0, "size=256m"); err != nil {
		missing(t, "overlay", "a tmpfs cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(mem, unix.MNT_DETACH) })
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(mem, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	opts := fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", dir.Path, mem, mem)
	if err := unix.Mount("overlay", w.at, "overlay", 0, opts); err != nil {
		missing(t, "overlay", "an overlay cannot be mounted: "+err.Error())
	}
	mounted := true
	w.done = func() {
		if mounted {
			_ = unix.Unmount(w.at, unix.MNT_DETACH)
		}
		mounted = false
	}
	t.Cleanup(w.done)
	up, err := os.Open(filepath.Join(mem, "upper"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Close() })
	w.layer = Layer{Dir: up}
	return w
}

// finish ends the run. If there is nothing to apply, it returns an empty set.
func (w *world) finish(end Ending) *Set {
	w.t.Helper()
	w.done()
	sets, err := w.turn.Finish(w.t.Context(), end, w.layer)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.turn.Close(); err != nil {
		w.t.Fatal(err)
	}
	if len(sets) == 0 {
		return &Set{}
	}
	return sets[0]
}

// plant makes files: "path" → content; "path/" is a folder, "path@" a link.
func plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(mapKeys(files)) {
		at := filepath.Join(dir, strings.TrimRight(name, "/@"))
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		case strings.HasSuffix(name, "@"):
			_ = os.Remove(at)
			err = os.Symlink(files[name], at)
		default:
			err = os.WriteFile(at, []byte(files[name]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// look describes everything below dir: types, modes, times, content, holes and
// attributes. Times of folders are left out, since changing their files changes them.
func look(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == "." {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			text += " to " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %x %s", len(data), sha256.Sum256(data), info.ModTime().UTC().Format("15:04:05.000000000"))
		}
		if info.Mode()&fs.ModeSymlink == 0 && (info.IsDir() || info.Mode().IsRegular()) {
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			attrs, err := tree.ReadAttrs(f)
			_ = f.Close()
			if err != nil {
				return err
			}
			attrs.Split()
			for _, name := range slices.Sorted(mapKeys(attrs)) {
				text += fmt.Sprintf(" %s=%q", name, attrs[name])
			}
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// states returns "path" → "kind state why".
func states(set *Set) map[string]string {
	m := map[string]string{}
	for _, c := range set.Changes {
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Kind, c.State, c.Why))
		if was := m[c.Path]; was != "" {
			text = was + ", " + text
		}
		m[c.Path] = text
	}
	return m
}

func mountTmpfs(t testing.TB, at, opts string) string {
	t.Helper()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, opts); err != nil {
		missing(t, "overlay", "a tmpfs cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	return at
}

func setxattr(t testing.TB, at, name, value string) {
	t.Helper()
	if err := unix.Setxattr(at, name, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

func mustTree(t testing.TB, f *os.File) *tree.Dir {
	t.Helper()
	d, err := tree.From(f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
