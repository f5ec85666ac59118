package copies

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/private"
)

// lockVar makes the test binary act as a server that uses a copy until its input
// ends. Its value is the folder of the copies, and the arguments are a pack and a
// digest.
const lockVar = "COPIES_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(lockVar); ok {
		os.Exit(hold(dir, os.Args[1], os.Args[2]))
	}
	os.Exit(m.Run())
}

func hold(dir, pack, digest string) int {
	folder, _, err := Open(dir, Options{}).Copy(context.Background(), pack, digest)
	if err != nil {
		folder = err.Error()
	}
	_, _ = os.Stdout.WriteString(folder + "\n")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the input ends, or this process is killed
	return 0
}

// tree writes files into a new folder. A name that ends in "/" is a folder, and one
// that ends in "*" is executable.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(strings.TrimRight(name, "*")))
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			mode := fs.FileMode(0o644)
			if strings.HasSuffix(name, "*") {
				mode = 0o755
			}
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func digest(t testing.TB, pack string) string {
	t.Helper()
	dir, _, err := openPack(pack)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	tree, err := dir.Digest(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Digest
}

// folder returns a folder for copies. After the test it makes what is in it writable,
// so that it can be removed.
func folder(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state", "copies")
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	return dir
}

func mustCopy(t testing.TB, s *Store, pack, digest string) (string, func()) {
	t.Helper()
	folder, release, err := s.Copy(t.Context(), pack, digest)
	if err != nil {
		t.Fatalf("Copy(%q) = %v", pack, err)
	}
	return folder, release
}

// names returns the names in a folder, without locks.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func hexOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }

func TestCopy(t *testing.T) {
	pack := tree(t, map[string]string{"SKILL.md": "s", "scripts/run.sh*": "#!/bin/sh\n", "scripts/empty/": "", "a b": ""})
	links := os.Symlink("../../outside", filepath.Join(pack, "scripts", "link")) == nil
	old := time.Unix(1_600_000_000, 0)
	if err := os.Chtimes(filepath.Join(pack, "SKILL.md"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(pack, "scripts"), old, old); err != nil {
		t.Fatal(err)
	}
	want := digest(t, pack)
	dir := folder(t)
	s := Open(dir, Options{})
	got, release := mustCopy(t, s, pack, want)
	defer release()

	if d := digest(t, got); d != want {
		t.Errorf("the copy has the digest %s, want %s", d, want)
	}
	if info, err := os.Stat(filepath.Join(got, "scripts", "empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty folder: %v", err)
	}
	for _, name := range []string{"SKILL.md", "scripts"} {
		if info, err := os.Stat(filepath.Join(got, name)); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("the time of %q = %v, %v, want %v", name, info.ModTime(), err, old)
		}
	}
	if target, err := os.Readlink(filepath.Join(got, "scripts", "link")); links && target != filepath.FromSlash("../../outside") {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if resolved, err := filepath.EvalSymlinks(got); err != nil || resolved != got {
		t.Errorf("Copy = %q, which is %q (%v)", got, resolved, err)
	}
	again, releaseAgain := mustCopy(t, s, pack, want)
	other, releaseOther := mustCopy(t, Open(dir, Options{}), pack, want)
	if again != got || other != got {
		t.Errorf("Copy = %q, and %q in another server, want %q again", again, other, got)
	}
	releaseAgain()
	releaseAgain()
	releaseOther()
	if diff := cmp.Diff([]string{hexOf(want)}, names(t, dir)); diff != "" {
		t.Errorf("in the folder (-want +got):\n%s", diff)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, mode := range map[string]fs.FileMode{
		".": 0o700 | fs.ModeDir, "SKILL.md": 0o400, "scripts": 0o700 | fs.ModeDir, "scripts/run.sh": 0o500,
		"../..": 0o700 | fs.ModeDir,
	} {
		if info, err := os.Lstat(filepath.Join(got, name)); err != nil || info.Mode() != mode {
			t.Errorf("the mode of %q = %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
}

// A loose tool's copy has its one file, and nothing that is beside it.
func TestCopyLoose(t *testing.T) {
	dir := tree(t, map[string]string{"a.tool.json": "{}", "b.tool.json": "{}", "key": "secret"})
	pack := filepath.Join(dir, "a.tool.json")
	got, release := mustCopy(t, Open(folder(t), Options{}), pack, digest(t, pack))
	defer release()
	if text, err := os.ReadFile(got); err != nil || string(text) != "{}" || filepath.Base(got) != "a.tool.json" {
		t.Errorf("Copy = %q with %q, %v", got, text, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(got)); err != nil || len(entries) != 1 {
		t.Errorf("beside the copy: %v, %v", entries, err)
	}
}

// RP-04: only trees with the right digest are returned or kept.
func TestCopyRefuses(t *testing.T) {
	pack := tree(t, map[string]string{"run.sh*": "good", "d/x": "1"})
	approved := digest(t, pack)
	change := func(f func(dir string) error) func(t *testing.T) (string, string) {
		return func(t *testing.T) (string, string) {
			pack := tree(t, map[string]string{"run.sh*": "good", "d/x": "1"})
			if err := f(pack); err != nil {
				t.Skip(err)
			}
			return pack, approved
		}
	}
	for _, tt := range []struct {
		name    string
		make    func(t *testing.T) (pack, digest string)
		changed bool
	}{
		{"other bytes", change(func(dir string) error { return os.WriteFile(filepath.Join(dir, "run.sh"), []byte("evil"), 0o755) }), true},
		{"one more file", change(func(dir string) error { return os.WriteFile(filepath.Join(dir, "sitecustomize.py"), nil, 0o600) }), true},
		{"one less", change(func(dir string) error { return os.Remove(filepath.Join(dir, "d", "x")) }), true},
		{"a link in place of a file", change(func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "run.sh"), filepath.Join(t.TempDir(), "run.sh")),
				os.Symlink("d/x", filepath.Join(dir, "run.sh")))
		}), true},
		{"another pack", func(t *testing.T) (string, string) { return tree(t, map[string]string{"a": "b"}), approved }, true},
		{"no pack", func(t *testing.T) (string, string) { return filepath.Join(t.TempDir(), "gone"), approved }, true},
		{"no digest", func(t *testing.T) (string, string) { return pack, "" }, false},
		{"a path as digest", func(t *testing.T) (string, string) { return pack, "sha256:../../" + strings.Repeat("a", 58) }, false},
		{"an upper-case digest", func(t *testing.T) (string, string) { return pack, strings.ToUpper(approved) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t)
			pack, digest := tt.make(t)
			got, release, err := Open(dir, Options{}).Copy(t.Context(), pack, digest)
			if err == nil || errors.Is(err, ErrChanged) != tt.changed || got != "" || release != nil {
				t.Errorf("Copy = %q, %v, want it refused", got, err)
			}
			if _, err := os.Stat(dir); err == nil && len(names(t, dir)) > 0 {
				t.Errorf("%v is kept", names(t, dir))
			}
		})
	}
}

// A folder that others can look into is not used; private.Folder has the other cases.
func TestFolderRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of Unix")
	}
	pack, dir := tree(t, map[string]string{"a": "1"}), folder(t)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o750)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, Options{}).Copy(t.Context(), pack, digest(t, pack)); !errors.As(err, new(*private.FolderError)) {
		t.Errorf("Copy = %v, want a *private.FolderError", err)
	}
}

// A copy that somebody changed is not used. A new one is made, beside it if a run
// still uses it.
func TestCopyDamaged(t *testing.T) {
	pack := tree(t, map[string]string{"run.sh*": "good", "d/x": "1"})
	want := digest(t, pack)
	damage := map[string]func(copied string) error{
		"bytes":  func(copied string) error { return os.WriteFile(filepath.Join(copied, "run.sh"), []byte("evil"), 0o500) },
		"a file": func(copied string) error { return os.WriteFile(filepath.Join(copied, "d", "y"), nil, 0o400) },
		"all":    os.RemoveAll,
		"link": func(copied string) error {
			aside := filepath.Join(filepath.Dir(copied), "aside")
			return errors.Join(os.Rename(copied, aside), os.Symlink(aside, copied))
		},
	}
	for name, damage := range damage {
		for _, used := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				dir := folder(t)
				s := Open(dir, Options{})
				first, release := mustCopy(t, s, pack, want)
				if !used {
					release()
				}
				for _, d := range []string{filepath.Join(first, "run.sh"), filepath.Join(first, "d"), first} {
					if err := os.Chmod(d, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if err := damage(first); err != nil {
					t.Skip(err)
				}
				second, releaseSecond := mustCopy(t, s, pack, want)
				if d := digest(t, second); d != want || used == (first == second) {
					t.Errorf("Copy = %q with %s after %q with %s, in use: %v", second, d, first, want, used)
				}
				if text, err := os.ReadFile(filepath.Join(second, "run.sh")); err != nil || string(text) != "good" {
					t.Errorf("run.sh = %q, %v", text, err)
				}
				releaseSecond()
				release()
				if third, release := mustCopy(t, s, pack, want); third != first || len(names(t, dir)) != 1 {
					t.Errorf("Copy = %q, want %q; there are %v", third, first, names(t, dir))
				} else {
					release()
				}
			})
		}
	}
}

func TestSurplus(t *testing.T) {
	var packs, digests []string
	for i := range 5 {
		packs = append(packs, tree(t, map[string]string{"a": strings.Repeat(string(rune('a'+i)), 100)}))
		digests = append(digests, digest(t, packs[i]))
	}
	for _, o := range []Options{{Copies: 2}, {Bytes: 250}} {
		dir := folder(t)
		s := Open(dir, o)
		_, hold := mustCopy(t, s, packs[0], digests[0])
		for i := 1; i < 5; i++ {
			_, release := mustCopy(t, s, packs[i], digests[i])
			release()
			past := time.Now().Add(time.Duration(i-100) * time.Minute)
			if err := os.Chtimes(filepath.Join(dir, hexOf(digests[i])), past, past); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{hexOf(digests[0]), hexOf(digests[4])}
		got := names(t, dir)
		if !cmp.Equal(want, got) && !cmp.Equal([]string{want[1], want[0]}, got) {
			t.Errorf("with %+v: %v, want the one in use and the last, %v", o, got, want)
		}
		hold()
	}
}

// What an ended process left behind is removed, but not a copy that is being made.
func TestLeftOver(t *testing.T) {
	dir := folder(t)
	s := Open(dir, Options{})
	pack, other := tree(t, map[string]string{"a": "1"}), tree(t, map[string]string{"a": "2"})
	_, release := mustCopy(t, s, pack, digest(t, pack))
	release()
	making := flock.New(filepath.Join(dir, "making-NOW"+lockEnd))
	if err := making.RLock(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = making.Close() })
	for name, age := range map[string]time.Duration{"making-OLD": 2 * time.Hour, "making-NEW": time.Minute, "making-NOW": 0, hexOf(digest(t, pack)) + ".ONCE": 0} {
		sub := filepath.Join(dir, name, treeName)
		if err := errors.Join(os.MkdirAll(sub, 0o700), os.WriteFile(filepath.Join(sub, "a"), nil, 0o400), os.Chmod(sub, 0o500)); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "somebody's"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Open(dir, Options{}).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, release = mustCopy(t, s, other, digest(t, other))
	release()
	want := []string{hexOf(digest(t, pack)), hexOf(digest(t, other)), "making-NOW", "somebody's"}
	if diff := cmp.Diff(want, names(t, dir), cmp.Transformer("sorted", sorted)); diff != "" {
		t.Errorf("in the folder (-want +got):\n%s", diff)
	}
}

func sorted(s []string) map[string]bool {
	m := map[string]bool{}
	for _, name := range s {
		m[name] = true
	}
	return m
}

// Many calls at once, from two servers, with room for fewer copies than they use.
func TestConcurrent(t *testing.T) {
	dir := folder(t)
	stores := []*Store{Open(dir, Options{Copies: 1}), Open(dir, Options{Copies: 1})}
	packs := []string{tree(t, map[string]string{"a": "1"}), tree(t, map[string]string{"a": "2"}), tree(t, map[string]string{"a": "3"})}
	var wg sync.WaitGroup
	for i := range 24 {
		pack := packs[i%3]
		want := digest(t, pack)
		wg.Go(func() {
			for range 5 {
				got, release, err := stores[i%2].Copy(t.Context(), pack, want)
				if err != nil {
					t.Errorf("Copy = %v", err)
					return
				}
				if d := digest(t, got); d != want {
					t.Errorf("Copy = %q with %s, want %s", got, d, want)
				}
				release()
			}
		})
	}
	wg.Wait()
}

// A copy that another process uses is not removed. Once that process is killed, it
// may be.
func TestAnotherServer(t *testing.T) {
	pack, other := tree(t, map[string]string{"a": "1"}), tree(t, map[string]string{"a": "2"})
	dir := folder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], pack, digest(t, pack))
	cmd.Env = append(os.Environ(), lockVar+"="+dir, "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 1<<10)
	n, _ := out.Read(said)
	used := strings.TrimSpace(string(said[:n]))
	s := Open(dir, Options{Copies: 1})
	_, release := mustCopy(t, s, other, digest(t, other))
	release()
	if _, err := os.Stat(filepath.Join(used, "a")); err != nil {
		t.Errorf("the copy that another server uses: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	third := tree(t, map[string]string{"a": "3"})
	_, release = mustCopy(t, s, third, digest(t, third))
	release()
	if _, err := os.Stat(used); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy of a server that was killed: %v, want it gone", err)
	}
}

// The pack is replaced again and again while it is copied: a copy has the digest, or
// there is none.
func TestCopyWhileItChanges(t *testing.T) {
	pack := tree(t, map[string]string{"run.sh*": strings.Repeat("good", 5000), "other": "x"})
	evil := tree(t, map[string]string{"run.sh*": strings.Repeat("evil", 5000)})
	want := digest(t, pack)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		a, b, c := filepath.Join(pack, "run.sh"), filepath.Join(evil, "run.sh"), filepath.Join(evil, "aside")
		for i := 0; ; i++ {
			_ = os.Rename(a, c)
			_ = os.Rename(b, a)
			_ = os.Rename(c, b)
			select {
			case <-stop:
				if i%2 == 1 {
					return
				}
			default:
			}
		}
	}()
	copied, refused := 0, 0
	for range 50 {
		dir := folder(t) // so that a new copy is made each time
		got, release, err := Open(dir, Options{}).Copy(t.Context(), pack, want)
		if err != nil {
			if !errors.Is(err, ErrChanged) {
				t.Errorf("Copy = %v, want %v", err, ErrChanged)
			}
			refused++
			continue
		}
		if d := digest(t, got); d != want {
			t.Errorf("Copy = a tree with %s, want %s", d, want)
		}
		copied++
		release()
	}
	close(stop)
	<-ended
	t.Logf("%d copied, %d refused", copied, refused)
}

func TestCopyEnds(t *testing.T) {
	pack := tree(t, map[string]string{"a": "1"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := folder(t)
	if _, _, err := Open(dir, Options{}).Copy(ctx, pack, digest(t, pack)); !errors.Is(err, context.Canceled) {
		t.Errorf("Copy = %v, want %v", err, context.Canceled)
	}
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("%v is left", got)
	}
}

// A digest does not cover the content of special files, and copies do not hold them.
// A link with a line break in its target has no digest at all. What the digest denies
// is part of what was approved, but is not in the copy.
func TestCopyDenied(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links of Unix")
	}
	pack := tree(t, map[string]string{"a": "1", "odd\nname": "2"})
	before := digest(t, pack)
	if err := os.Symlink("x\ny", filepath.Join(pack, "l")); err != nil {
		t.Skip(err)
	}
	s := Open(folder(t), Options{})
	if _, _, err := s.Copy(t.Context(), pack, before); !errors.Is(err, ErrChanged) {
		t.Errorf("Copy = %v, want %v", err, ErrChanged)
	}
	want := digest(t, pack)
	first, release := mustCopy(t, s, pack, want)
	release()
	entries, err := os.ReadDir(first)
	if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("the copy holds %v, %v; want only the file a", entries, err)
	}
	stamp, err := os.Stat(filepath.Join(first, "a"))
	if err != nil {
		t.Fatal(err)
	}
	again, release := mustCopy(t, s, pack, want)
	release()
	if now, err := os.Stat(filepath.Join(again, "a")); err != nil || !os.SameFile(stamp, now) {
		t.Errorf("the second run got another copy (%v); want the one that is kept", err)
	}
	// A file of the pack cannot be left out of a copy by listing it as denied.
	list := filepath.Join(filepath.Dir(first), deniedName)
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, append(text, "\"a\\x000\\x00"+strings.Repeat("0", 64)+"\\n\"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(first, "a")); err != nil {
		t.Fatal(err)
	}
	third, release := mustCopy(t, s, pack, want)
	defer release()
	if _, err := os.Stat(filepath.Join(third, "a")); err != nil {
		t.Errorf("a copy without one of the pack's files was used: %v", err)
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, tt := range []struct {
		name  string
		files int
		size  int
	}{{"1x4KiB", 1, 4 << 10}, {"100x4KiB", 100, 4 << 10}, {"1x8MiB", 1, 8 << 20}} {
		files := map[string]string{}
		for i := range tt.files {
			files["d"+string(rune('a'+i%10))+"/f"+string(rune('a'+i/10))] = strings.Repeat("x", tt.size)
		}
		pack := tree(b, files)
		want := digest(b, pack)
		b.Run(tt.name+"/first", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := Open(folder(b), Options{})
				b.StartTimer()
				_, release := mustCopy(b, s, pack, want)
				release()
			}
		})
		b.Run(tt.name+"/later", func(b *testing.B) {
			s := Open(folder(b), Options{})
			for b.Loop() {
				_, release := mustCopy(b, s, pack, want)
				release()
			}
		})
	}
}
