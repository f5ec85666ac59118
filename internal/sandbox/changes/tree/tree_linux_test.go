package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Neither way of walking goes through a link or out of the folder.
func TestWalk(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"in/a/b", "out"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"in/out": "../out", "in/a/back": "..", "in/abs": top} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(filepath.Join(top, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, walk := range map[string]func(string) (*Dir, error){"openat2": d.Walk, "each": d.walkEach} {
		for path, ok := range map[string]bool{".": true, "a": true, "a/b": true, "out": false, "a/back": false, "a/back/a": false, "abs": false, "none": false} {
			sub, err := walk(path)
			if (err == nil) != ok {
				t.Errorf("%s: %q: %v, want success: %v", name, path, err, ok)
			}
			if err == nil {
				_ = sub.Close()
			}
		}
	}
	for _, path := range []string{"..", "a/../..", "/", "a//b", "a/", "./a", "a\x00"} {
		if _, err := d.Walk(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Walk(%q) = %v, want fs.ErrInvalid", path, err)
		}
	}
}

func TestMove(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Move("a", d, "b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Move over another = %v, want fs.ErrExist", err)
	}
	if err := d.Move("a", d, "c"); err != nil {
		t.Error(err)
	}
	if err := d.Swap("c", d, "b"); err != nil && !errors.Is(err, ErrNoSwap) {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(top, "b")); err != nil || string(data) != "a" {
		t.Errorf("after Swap b holds %q, %v", data, err)
	}
}

func TestMoment(t *testing.T) {
	top := t.TempDir()
	d, err := Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 50 {
		if err := os.WriteFile(filepath.Join(top, "f"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		before, _ := d.Lstat("f")
		now, err := d.Moment()
		if err != nil || now <= before.Ctime {
			t.Fatalf("Moment = %d, %v, and a file from before has %d", now, err, before.Ctime)
		}
		if err := os.Chmod(filepath.Join(top, "f"), 0o600); err != nil {
			t.Fatal(err)
		}
		if after, _ := d.Lstat("f"); after.Ctime < now {
			t.Fatalf("Moment = %d, and a file from after has %d", now, after.Ctime)
		}
	}
	if names, err := d.Names(); err != nil || len(names) != 1 {
		t.Errorf("Names = %q, %v: something is left", names, err)
	}
}
