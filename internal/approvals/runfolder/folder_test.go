package runfolder

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRunFolder(t *testing.T) {
	open := func(path string) error {
		f, err := Open(path)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "run")
	if err := open(path); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(file); err == nil {
		t.Error("Open of a file = nil, want an error")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("links cannot be made here:", err)
	}
	if err := open(link); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("Open of a link = %v, want an error", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o755, 0o777, 0o500} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := open(path); err != nil {
			t.Errorf("Open with the mode %o = %v", mode, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("then its mode is %v, %v, want 0700", info.Mode(), err)
		}
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"open-old.html", ".part-old", "other-old", ".part-new", "1-x.html", "x-1.json", "1-killed.json"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "new") {
			continue
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	alive, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	for _, name := range []string{"open-alive.html", strconv.Itoa(os.Getpid()) + "-alive.json"} {
		if err := alive.Write(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("other-old", filepath.Join(dir, "open-link.html")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	want := []string{".part-new", "1-x.html", strconv.Itoa(os.Getpid()) + "-alive.json", "open-alive.html", "open-link.html", "other-old", "x-1.json"}
	slices.Sort(want)
	slices.Sort(left)
	if err != nil || !slices.Equal(left, want) && runtime.GOOS != "windows" {
		t.Errorf("after sweep there are %q, %v, want %q", left, err, want)
	}
	// A file that its server removes is gone; the next server removes what it
	// leaves.
	if err := alive.Remove("open-alive.html"); err != nil {
		t.Error(err)
	}
	if err := alive.Close(); err != nil {
		t.Error(err)
	}
	f.sweep()
	if left, err := filepath.Glob(filepath.Join(dir, "*alive*")); err != nil || len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("after the server's end there are %q, %v", left, err)
	}
}
