package packfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func sparseFile(t *testing.T, name string, size int64) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Skipf("sparse files: %v", err)
	}
}

// A file that cannot be digested denies only itself.
func TestDenied(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names of Unix")
	}
	for _, tt := range []struct {
		name string
		path string
		make func(t *testing.T, path string) error
		why  error // nil: a *TooLargeError
	}{
		{"too large", "sub/big", func(t *testing.T, path string) error { sparseFile(t, path, 5<<30); return nil }, nil},
		{"line break", "sub/a\nb", func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("x"), 0o644) }, ErrOddName},
		{"control character", "sub/\x1b[2J", func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("x"), 0o644) }, ErrOddName},
		{"no UTF-8", "sub/\xff", func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("x"), 0o644) }, ErrOddName},
		{"odd folder", "sub/\x07", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o755) }, ErrOddName},
		{"odd link", "sub/l", func(_ *testing.T, path string) error { return os.Symlink("x\ny", path) }, ErrLineBreak},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, map[string]string{"SKILL.md": "1", "sub/a": "2"})
			before := digest(t, dir, nil)
			at := filepath.Join(dir, filepath.FromSlash(tt.path))
			if err := tt.make(t, at); err != nil {
				t.Skip(err)
			}
			got := digest(t, dir, nil)
			if len(got.Files) != 2 || len(got.Denied) != 1 || got.Denied[0].Path != tt.path || !got.IsPartial() {
				t.Fatalf("Digest = %d files, denied %v; want 2 files, and %q denied", len(got.Files), got.Denied, tt.path)
			}
			if why := got.Denies(tt.path); tt.why != nil && !errors.Is(why, tt.why) || tt.why == nil && !errors.As(why, new(*TooLargeError)) {
				t.Errorf("Denies(%q) = %v, want %v", tt.path, why, tt.why)
			}
			if got.Denies("sub/a") != nil || got.Denies(tt.path+"/below") == nil {
				t.Error("Denies is wrong about what is beside, or below, what is denied")
			}
			if got.Digest == before.Digest {
				t.Error("the digest is that of the tree without the denied entry")
			}
			if again := digest(t, dir, nil); again.Digest != got.Digest {
				t.Error("two digests of one tree differ")
			}
			if _, err := open(t, dir).DigestWithin(t.Context(), nil, Bound{}); !errors.Is(tt.why, ErrOddName) && err == nil {
				t.Error("DigestWithin succeeded; want it to leave nothing out")
			}
			seen, err := open(t, dir).Survey(t.Context())
			if err != nil || len(seen.Denied) != 1 || seen.Denied[0].Path != tt.path || seen.Digest != "" {
				t.Errorf("Survey = %+v, %v; want %q denied", seen, err, tt.path)
			}
			if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
				return
			}
			if err := os.Chtimes(at, time.Now(), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if changed := digest(t, dir, nil); changed.Digest == got.Digest {
				t.Error("the digest is the same after the denied file was written to")
			}
		})
	}
}

// A copy contains nothing that is denied, and has the digest of the tree.
func TestDeniedCopy(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names of Unix")
	}
	dir := tree(t, map[string]string{"a": "1", "odd\n": "2"})
	sparseFile(t, filepath.Join(dir, "big"), 5<<30)
	want := digest(t, dir, nil)
	at := t.TempDir()
	to, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	copied, err := open(t, dir).CopyTo(t.Context(), to)
	if err != nil || copied.Digest != want.Digest {
		t.Fatalf("CopyTo = %+v, %v; want the digest of the tree", copied, err)
	}
	if entries, err := os.ReadDir(at); err != nil || len(entries) != 1 {
		t.Errorf("the copy holds %v, %v; want only the file a", entries, err)
	}
	d := open(t, at)
	if got, err := d.DigestCopy(t.Context(), nil, copied.DeniedText()); err != nil || got.Digest != want.Digest {
		t.Errorf("DigestCopy = %v, %v; want the digest of the tree", got, err)
	}
	for _, bad := range []string{"x", `"a\x000\x00` + strings.Repeat("0", 64) + `\n"`} {
		if _, err := d.DigestCopy(t.Context(), nil, []byte(bad)); err == nil {
			t.Errorf("DigestCopy with the list %q succeeded", bad)
		}
	}
}

// The limit also applies to a single file.
func TestDeniedLimit(t *testing.T) {
	dir := tree(t, map[string]string{"small": "1234", "large": "123456"})
	d := open(t, dir)
	d.LimitTree(5)
	got, err := d.Digest(t.Context(), nil)
	if err != nil || len(got.Files) != 1 || len(got.Denied) != 1 || got.Denied[0].Path != "large" {
		t.Errorf("Digest = %+v, %v; want only the large file denied", got, err)
	}
	full := digest(t, dir, nil)
	if full.Digest == got.Digest || full.IsPartial() {
		t.Error("the file is not a change of the tree when the limit lets it be read")
	}
}

// An error about the process, not about the file, denies no file.
func TestDeniesOnlyAccess(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&fs.PathError{Err: syscall.EACCES}, true},
		{syscall.EPERM, true},
		{syscall.EIO, true},
		{syscall.EMFILE, false},
		{syscall.ENOMEM, false},
		{ErrChanged, false},
		{ErrNotFound, false},
	} {
		w := &treeWalk{tree: &Tree{}}
		if got := w.denies("f", tt.err, nil); got != tt.want || len(w.tree.Denied) == 1 != tt.want {
			t.Errorf("denies(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

// In a directory opened for one file, a denied file is an error.
func TestDeniedAlone(t *testing.T) {
	dir := tree(t, map[string]string{"a.tool.json": "123456"})
	d, err := OpenFile(filepath.Join(dir, "a.tool.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.LimitTree(5)
	if got, err := d.Digest(t.Context(), nil); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("Digest = %+v, %v; want it to fail", got, err)
	}
	if got, err := d.Survey(t.Context()); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("Survey = %+v, %v; want it to fail", got, err)
	}
}

// With too many files there is no partial digest: the order of the directory would decide
// which files it covers.
func TestDigestOfTooManyFiles(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"})
	got, err := open(t, dir).walk(&treeWalk{ctx: t.Context(), within: Bound{Files: 3}, tree: &Tree{}}, nil)
	tooLarge := new(TooLargeError)
	if !errors.As(err, &tooLarge) || tooLarge.Unit != "files" || !tooLarge.Tree {
		t.Errorf("walk = %+v, %v; want a failure about the number of files", got, err)
	}
}
