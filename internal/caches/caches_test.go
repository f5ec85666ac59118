package caches

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/private"
)

// holdVar makes the test binary a server that uses a cache until its input ends.
// Its value is the folder of the caches; the argument is a key.
const holdVar = "CACHES_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(holdVar); ok {
		os.Exit(hold(dir, os.Args[1]))
	}
	os.Exit(m.Run())
}

func hold(dir, key string) int {
	c, err := Open(dir, Options{}).Take(context.Background(), key, about("1"))
	text := ""
	if err != nil {
		text = err.Error()
	} else {
		text = c.Folder
	}
	_, _ = os.Stdout.WriteString(text + "\n")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until input ends, or we are killed
	if c != nil {
		c.Release(Held{Bytes: 1})
	}
	return 0
}

func about(version string) About {
	return About{Subject: "s", Version: version, Pack: "p", Tool: "t", Name: "go-build"}
}

func key(c string) string { return strings.Repeat(c, 64) }

func folder(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state", "caches")
}

func take(t testing.TB, s *Store, key string, a About) *Cache {
	t.Helper()
	c, err := s.Take(t.Context(), key, a)
	if err != nil {
		t.Fatalf("Take(%q) = %v", key, err)
	}
	return c
}

// fill writes a file into a cache, as a run does.
func fill(t testing.TB, c *Cache) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Folder, "object"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func isFilled(c *Cache) bool {
	_, err := os.Stat(filepath.Join(c.Folder, "object"))
	return err == nil
}

// names returns the entries of the caches' folder, except its lock.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, e.Name())
		}
	}
	return all
}

func TestTake(t *testing.T) {
	dir := folder(t)
	s := Open(dir, Options{})
	first := take(t, s, key("a"), about("1"))
	fill(t, first)
	// Another run shares it, in another server too.
	for _, s := range []*Store{s, Open(dir, Options{})} {
		second := take(t, s, key("a"), about("1"))
		if second.Folder != first.Folder || !isFilled(second) {
			t.Errorf("a second run at the same time gets %q, want what the first has, %q", second.Folder, first.Folder)
		}
		second.Release(Held{Bytes: 1})
		if !isFilled(first) {
			t.Error("the end of one run emptied what another uses")
		}
	}
	other := take(t, s, key("b"), About{Subject: "other", Version: "1", Name: "go-build"})
	if other.Folder == first.Folder || isFilled(other) {
		t.Errorf("other facts get the same folder, %q", other.Folder)
	}
	other.Release(Held{})
	first.Release(Held{Bytes: 1})
	first.Release(Held{Full: true}) // only the first has an effect
	again := take(t, s, key("a"), about("1"))
	if !isFilled(again) {
		t.Error("what a run left is gone")
	}
	again.Release(Held{Bytes: -1})
	if runtime.GOOS != "windows" {
		for _, path := range []string{dir, filepath.Dir(first.Folder), first.Folder} {
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o700|fs.ModeDir {
				t.Errorf("the mode of %q = %v, %v, want 0700", path, info.Mode(), err)
			}
		}
	}
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].About != about("1") || list[0].Bytes != 1 {
		t.Errorf("List = %+v, %v", list, err)
	}
}

func TestTakeNoKey(t *testing.T) {
	dir := folder(t)
	for _, name := range []string{"", "..", "../" + key("a"), strings.ToUpper(key("a")), key("a")[1:], key("g")} {
		if c, err := Open(dir, Options{}).Take(t.Context(), name, about("1")); err == nil {
			t.Errorf("Take(%q) = %q, want an error", name, c.Folder)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%q was made", dir)
	}
}

// A new version of a pack finds nothing, and the old version's cache is removed.
func TestVersion(t *testing.T) {
	dir := folder(t)
	s := Open(dir, Options{})
	old := take(t, s, key("a"), about("1"))
	fill(t, old)
	old.Release(Held{Bytes: 1})
	elsewhere := take(t, s, key("c"), about("1")) // in another project
	fill(t, elsewhere)
	now := take(t, s, key("b"), about("2"))
	if isFilled(now) {
		t.Error("the new version reads what the old one wrote")
	}
	if got, want := names(t, dir), []string{key("b"), key("c")}; !cmp.Equal(got, want) {
		t.Errorf("there are %v, want what is in use and the new one, %v", got, want)
	}
	elsewhere.Release(Held{Bytes: 1})
	now.Release(Held{Bytes: 1})
}

// A full cache is emptied by the last run that uses it.
func TestFull(t *testing.T) {
	s := Open(folder(t), Options{})
	first, second := take(t, s, key("a"), about("1")), take(t, s, key("a"), about("1"))
	fill(t, first)
	first.Release(Held{Bytes: 5, Full: true})
	if !isFilled(second) {
		t.Error("the cache was emptied while a run uses it")
	}
	second.Release(Held{Bytes: 5, Full: true})
	third := take(t, s, key("a"), about("1"))
	defer third.Release(Held{})
	if isFilled(third) {
		t.Error("a full cache was not emptied")
	}
}

func TestForget(t *testing.T) {
	dir := folder(t)
	s := Open(dir, Options{})
	ctx := t.Context()
	is := func(of string) func(string) bool { return func(name string) bool { return name == of } }
	if n, err := s.Forget(ctx, is(key("a"))); n != 0 || err != nil {
		t.Errorf("Forget without a folder = %d, %v", n, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("Forget made the folder")
	}
	a, b := take(t, s, key("a"), about("1")), take(t, s, key("b"), about("1"))
	fill(t, a)
	fill(t, b)
	b.Release(Held{Bytes: 1})
	if n, err := s.Forget(ctx, is(key("b"))); n != 1 || err != nil {
		t.Errorf("Forget = %d, %v, want 1", n, err)
	}
	if got := names(t, dir); !cmp.Equal(got, []string{key("a")}) {
		t.Errorf("there are %v after one was revoked", got)
	}
	// A revoked cache in use stays for its run, is not given to another, and is
	// then removed.
	if n, err := s.Forget(ctx, is(key("a"))); n != 1 || err != nil {
		t.Errorf("Forget = %d, %v, want 1", n, err)
	}
	if c, err := s.Take(ctx, key("a"), about("1")); !errors.Is(err, ErrOver) {
		t.Errorf("Take of one that was revoked = %+v, %v, want %v", c, err, ErrOver)
	}
	if !isFilled(a) {
		t.Error("the cache was emptied while a run uses it")
	}
	a.Release(Held{Bytes: 1})
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("there are %v after the run ended", got)
	}
}

func TestSweep(t *testing.T) {
	dir := folder(t)
	now := time.Now()
	s := Open(dir, Options{Count: 4, Bytes: 100, Age: time.Hour, Now: func() time.Time { return now }})
	for i, c := range []struct {
		key   string
		bytes int64
		age   time.Duration
	}{{"a", 10, 0}, {"b", 95, time.Minute}, {"c", 1, 2 * time.Minute}, {"d", 1, 2 * time.Hour}, {"e", 1, 3 * time.Hour}} {
		cache := take(t, Open(dir, Options{}), key(c.key), About{Subject: fmt.Sprint(i), Name: "x"})
		if c.key == "e" {
			defer cache.Release(Held{}) // in use
		} else {
			cache.Release(Held{Bytes: c.bytes})
		}
		then := now.Add(-c.age)
		if err := os.Chtimes(filepath.Join(dir, key(c.key)), then, then); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(dir, key("f")) // its server was killed
	if err := errors.Join(os.MkdirAll(filepath.Join(killed, dataName), 0o700), os.WriteFile(filepath.Join(killed, openName), nil, 0o600),
		os.WriteFile(filepath.Join(killed, aboutName), []byte(`{"subject":"f","name":"x"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"gone-X", "somebody's"} {
		if err := os.MkdirAll(filepath.Join(dir, left, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	// f may be incomplete, a is the newest, b does not fit beside it, c does, d
	// is too old, e is in use.
	if got, want := names(t, dir), []string{key("a"), key("c"), key("e"), "somebody's"}; !cmp.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// A cache whose server was killed may be incomplete; its lock is free.
func TestKilledServer(t *testing.T) {
	dir := folder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], key("a"))
	cmd.Env = append(os.Environ(), holdVar+"="+dir, "GORACE=atexit_sleep_ms=0")
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
	s := Open(dir, Options{})
	shared := take(t, s, key("a"), about("1"))
	if got := strings.TrimSpace(string(said[:n])); got != shared.Folder {
		t.Fatalf("another server has %q, want %q", got, shared.Folder)
	}
	fill(t, shared)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !isFilled(shared) {
		t.Error("the cache was emptied while a run uses it")
	}
	if runtime.GOOS != "windows" {
		shared.lock.Close() // as if this server had been killed too
	}
	after := take(t, s, key("a"), about("1"))
	defer after.Release(Held{})
	if isFilled(after) {
		t.Error("a cache of which nobody knows whether it is whole is used")
	}
}

// Something that replaced a cache is not used, followed or changed.
func TestReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links of Unix")
	}
	for _, tt := range []struct {
		name, want string
		replace    func(at, elsewhere string) error // creates something at a free path
		at         string                           // relative to the folder of the caches
	}{
		{"link", "symbolic link", func(at, elsewhere string) error { return os.Symlink(elsewhere, at) }, "."},
		{"open folder", "open to other users", func(at, _ string) error { return errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, 0o755)) }, "."},
		{"cache as a link", "symbolic link", func(at, elsewhere string) error { return os.Symlink(elsewhere, at) }, key("a")},
		{"cache as a file", "not a folder", func(at, _ string) error { return os.WriteFile(at, nil, 0o600) }, key("a")},
		{"data as a link", "symbolic link", func(at, elsewhere string) error { return os.Symlink(elsewhere, at) }, key("a") + "/data"},
		{"data as a file", "not a folder", func(at, _ string) error { return os.WriteFile(at, nil, 0o600) }, key("a") + "/data"},
		{"lock as a link", "cannot be", func(at, elsewhere string) error { return os.Symlink(filepath.Join(elsewhere, "new"), at) }, key("a") + "/lock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, elsewhere := folder(t), t.TempDir()
			s := Open(dir, Options{})
			c := take(t, s, key("a"), about("1"))
			c.Release(Held{Bytes: 1})
			at := filepath.Join(dir, tt.at)
			if err := errors.Join(os.RemoveAll(at), tt.replace(at, elsewhere)); err != nil {
				t.Fatal(err)
			}
			_, err := s.Take(t.Context(), key("a"), about("1"))
			if fe, ok := errors.AsType[*private.FolderError](err); !ok || !strings.Contains(fe.Error(), tt.want) {
				t.Errorf("Take = %v, want a *private.FolderError about %q", err, tt.want)
			}
			if err := s.Sweep(t.Context()); err != nil && tt.at != "." {
				t.Errorf("Sweep = %v", err)
			}
			if list, err := os.ReadDir(elsewhere); err != nil || len(list) > 0 {
				t.Errorf("where the link leads there is %v, %v", list, err)
			}
		})
	}
}

// A cache whose about.json names another owner, or is missing or damaged, is not
// used.
func TestAboutDamaged(t *testing.T) {
	for name, text := range map[string]string{
		"none": "", "not JSON": "{", "another's": `{"subject":"x","version":"1","pack":"p","tool":"t","name":"go-build"}`,
		"too large": `{"subject":"s","version":"1","pack":"p","tool":"t","name":"go-build","x":"` + strings.Repeat("x", maxAbout) + `"}`,
	} {
		dir := folder(t)
		s := Open(dir, Options{})
		c := take(t, s, key("a"), about("1"))
		fill(t, c)
		c.Release(Held{Bytes: 1})
		path := filepath.Join(dir, key("a"), aboutName)
		err := os.WriteFile(path, []byte(text), 0o600)
		if text == "" {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		again := take(t, s, key("a"), about("1"))
		if isFilled(again) {
			t.Errorf("%s: what was there is used", name)
		}
		again.Release(Held{Bytes: 1})
	}
}

// Whatever a program leaves in its cache, the cache can be emptied, and nothing
// outside is touched.
func TestRemoveHostile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links of Unix")
	}
	dir, outside := folder(t), t.TempDir()
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := Open(dir, Options{})
	c := take(t, s, key("a"), about("1"))
	script := `ln -s "$1" out; ln -s "$1/precious" file; ln -s . loop; mkfifo fifo; : >set; chmod 6755 set; mkdir closed; : >closed/x; chmod 0 closed
		i=0; while [ $i -lt 40 ]; do d=dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd; mkdir $d; cd $d; : >f; ln -s "$1" l; i=$((i+1)); done; chmod 0 .`
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "sh", outside)
	cmd.Dir = c.Folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	deep(t, c.Folder, 3000)
	if err := os.Chmod(c.Folder, 0); err != nil {
		t.Fatal(err)
	}
	c.Release(Held{Bytes: 1})
	// What its program made inaccessible is accessible to the next run.
	c = take(t, s, key("a"), about("1"))
	if info, err := os.Stat(c.Folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of the folder = %v, %v, want 0700", info.Mode(), err)
	}
	c.Release(Held{Full: true})
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("there are %v, want nothing left", got)
	}
	if info, err := os.Stat(precious); err != nil || info.Mode() != 0o644 {
		t.Errorf("outside: %v, %v", info, err)
	}
}

// deep creates a chain of folders longer than any path may be.
func deep(t *testing.T, at string, n int) {
	t.Helper()
	root, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := root.Mkdir("deeper", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := root.OpenRoot("deeper")
		if err != nil {
			t.Fatal(err)
		}
		_ = root.Close()
		root = next
	}
	_ = root.Close()
}

// Many runs of two servers at once, some of which fill their cache, while caches
// are revoked: no run loses the folder it uses.
func TestConcurrent(t *testing.T) {
	dir := folder(t)
	stores := []*Store{Open(dir, Options{Count: 1}), Open(dir, Options{Count: 1})}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for n := range 5 {
				c, err := stores[i%2].Take(t.Context(), key(string("abc"[i%3])), About{Subject: fmt.Sprint(i % 3), Name: "x"})
				if errors.Is(err, ErrOver) {
					continue
				}
				if err != nil {
					t.Errorf("Take = %v", err)
					return
				}
				mine := filepath.Join(c.Folder, fmt.Sprintf("%d-%d", i, n))
				if err := os.WriteFile(mine, nil, 0o600); err != nil {
					t.Errorf("in a cache that is in use: %v", err)
				}
				if i == 7 {
					_, _ = stores[0].Forget(t.Context(), func(string) bool { return true })
				}
				if _, err := os.Stat(mine); err != nil {
					t.Errorf("in a cache that is in use: %v", err)
				}
				c.Release(Held{Bytes: 1, Full: n == 3})
			}
		})
	}
	wg.Wait()
}
