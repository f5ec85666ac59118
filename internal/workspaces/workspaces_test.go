package workspaces

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func handle(n int) string { return fmt.Sprintf("%032x", n) }

// aged creates a workspace of this size that a server left that long ago.
func aged(t *testing.T, dir string, n, bytes int, age time.Duration) string {
	t.Helper()
	u, err := Make(dir, handle(n))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(u.Dir(), "sub", "file")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, make([]byte, bytes), 0o600)); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-age)
	for _, path := range []string{file, filepath.Dir(file), u.Dir()} {
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Leave(); err != nil {
		t.Fatal(err)
	}
	return u.Dir()
}

// left returns the existing workspaces and locks.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, d := range []string{dir, dir + locksSuffix} {
		entries, err := os.ReadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != sweepLock {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

func TestSweep(t *testing.T) {
	const day = 24 * time.Hour
	limits := Limits{Age: 30 * day, Bytes: 1000}
	for _, test := range []struct {
		name  string
		bytes []int
		ages  []time.Duration
		want  []int // removed, in this order
	}{
		{"young and small", []int{100, 100}, []time.Duration{time.Hour, 29 * day}, nil},
		{"old", []int{1, 1, 1}, []time.Duration{31 * day, time.Hour, 40 * day}, []int{2, 0}},
		{"too much", []int{600, 600, 600}, []time.Duration{5 * day, 3 * day, 4 * day}, []int{0, 2}},
		{"too much, but recent", []int{2000, 2000}, []time.Duration{time.Hour, 2 * time.Hour}, nil},
		{"old ones make the room", []int{900, 900}, []time.Duration{31 * day, 2 * day}, []int{0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "workspaces")
			var dirs, want, got []string
			for i := range test.bytes {
				dirs = append(dirs, aged(t, dir, i, test.bytes[i], test.ages[i]))
			}
			removed, err := Sweep(t.Context(), dir, limits)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range test.want {
				want = append(want, dirs[i])
			}
			for _, r := range removed {
				got = append(got, r.Dir)
				if r.Bytes == 0 || r.Used.IsZero() || r.Room != (time.Since(r.Used) < limits.Age) {
					t.Errorf("removed %+v", r)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("Sweep() removes %q, want %q", got, want)
			}
			if n := len(left(t, dir)); n != len(dirs)-len(want) {
				t.Errorf("%d are left, want %d: %q", n, len(dirs)-len(want), left(t, dir))
			}
		})
	}
}

// What a server uses stays, however old it is; so do entries that are not workspaces.
func TestSweepLeavesAlone(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), "workspaces"), t.TempDir()
	u, err := Make(dir, handle(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.Dir(), "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a folder of the user"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := 3
	if err := os.Symlink(outside, filepath.Join(dir, handle(2))); err == nil {
		want++
	}
	inside := aged(t, dir, 3, 10, time.Hour)
	_ = os.Symlink(outside, filepath.Join(inside, "link")) // tests nothing on systems where links need a privilege
	removed, err := Sweep(t.Context(), dir, Limits{Age: -time.Hour})
	if err != nil || len(removed) != 1 || removed[0].Dir != inside {
		t.Errorf("Sweep() = %v, %v, want the one that nobody uses", removed, err)
	}
	if got := left(t, dir); len(got) != want {
		t.Errorf("left are %q", got)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if err := u.Leave(); err != nil {
		t.Fatal(err)
	}
	if removed, err := Sweep(t.Context(), dir, Limits{Age: -time.Hour}); err != nil || len(removed) != 1 {
		t.Errorf("Sweep() = %v, %v once it is not used", removed, err)
	}
}

// A program may have made its folders inaccessible, and a killed server leaves its locks.
func TestSweepOfWhatWasLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspaces")
	closed := aged(t, dir, 1, 10, time.Hour)
	if runtime.GOOS != "windows" {
		if err := os.Chmod(filepath.Join(closed, "sub"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir+locksSuffix, handle(2)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Sweep(t.Context(), dir, Limits{Age: -time.Hour}); err != nil {
		t.Error(err)
	}
	if got := left(t, dir); len(got) > 0 {
		t.Errorf("left are %q", got)
	}
}

func TestMakeAndLeave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspaces")
	for _, bad := range []string{"", "..", strings.Repeat("g", 32), strings.Repeat("A", 32), handle(1) + "0"} {
		if _, err := Make(dir, bad); err == nil {
			t.Errorf("Make(%q) works", bad)
		}
	}
	u, err := Make(dir, handle(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Leave(); err != nil {
		t.Fatal(err)
	}
	if got := left(t, dir); len(got) > 0 {
		t.Errorf("an empty workspace leaves %q", got)
	}
	aged(t, dir, 2, 10, time.Hour)
	if _, err := Make(dir, handle(2)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Make() of a workspace that is there: %v", err)
	}
	if removed, err := Sweep(t.Context(), filepath.Join(dir, "none"), Limits{}); err != nil || removed != nil {
		t.Errorf("Sweep() of nothing = %v, %v", removed, err)
	}
}

// Several servers use one workspace at once. It stays when one leaves, is not swept while
// another uses it, and keeps its contents for the next. A link is not followed.
func TestJoin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspaces")
	handle := strings.Repeat("ab", 16)
	join := func() *Use {
		t.Helper()
		u, err := Join(dir, handle)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	sweep := func() int {
		t.Helper()
		removed, err := Sweep(t.Context(), dir, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return len(removed)
	}
	one, two := join(), join()
	if err := os.WriteFile(filepath.Join(one.Dir(), "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := one.Leave(); err != nil {
		t.Fatal(err)
	}
	if n := sweep(); n != 0 {
		t.Errorf("%d workspaces are removed while one is in use", n)
	}
	if err := two.Leave(); err != nil {
		t.Fatal(err)
	}
	again := join()
	if _, err := os.Stat(filepath.Join(again.Dir(), "kept")); err != nil || again.Dir() != one.Dir() {
		t.Errorf("opened again at %s: %v", again.Dir(), err)
	}
	if err := again.Leave(); err != nil {
		t.Fatal(err)
	}
	if n := sweep(); n != 1 {
		t.Errorf("%d workspaces are removed that nobody uses, want 1", n)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, handle)); err != nil {
		t.Skip("no symbolic links here")
	}
	if _, err := Join(dir, handle); err == nil {
		t.Error("a link is opened as a workspace")
	}
}

// A server that starts measures the workspaces that nobody uses, and holds the lock of each
// meanwhile. A chat that begins at another server waits for that, and then has a lock that
// the next sweep sees.
func TestWaitsForASweep(t *testing.T) {
	for name, begin := range map[string]func(dir, handle string) (*Use, error){"Make": Make, "Join": Join} {
		t.Run(name, func(t *testing.T) {
			dir, handle := filepath.Join(t.TempDir(), "workspaces"), strings.Repeat("ab", 16)
			if err := os.MkdirAll(dir+locksSuffix, 0o700); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				lock, err := taken(dir, handle)
				if err != nil || lock == nil {
					t.Fatalf("taken() = %v, %v", lock, err)
				}
				begun := make(chan *Use)
				go func() {
					u, err := begin(dir, handle)
					if err != nil {
						t.Errorf("while a server sweeps: %v", err)
					}
					begun <- u
				}()
				runtime.Gosched()
				if err := unlock(lock); err != nil {
					t.Fatal(err)
				}
				u := <-begun
				if u == nil {
					return
				}
				if removed, err := Sweep(t.Context(), dir, Limits{}); err != nil || len(removed) > 0 {
					t.Errorf("Sweep() = %v, %v; want nothing removed of what is in use", removed, err)
				}
				if err := errors.Join(u.Leave(), os.RemoveAll(u.Dir())); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
