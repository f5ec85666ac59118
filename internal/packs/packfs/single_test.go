package packfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.json": "one", "b.json": "two", "sub/a.json": "three"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenFile(filepath.Join(dir, "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if data, err := d.ReadAll("./a.json", 10); err != nil || string(data) != "one" {
		t.Errorf("ReadAll = %q, %v, want the file", data, err)
	}
	for _, name := range []string{"b.json", "sub", "sub/a.json"} {
		if _, err := d.ReadAll(name, 10); !errors.Is(err, ErrNotFound) {
			t.Errorf("ReadAll(%q) = %v, want %v", name, err, ErrNotFound)
		}
		if _, err := d.IsDir(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("IsDir(%q) = %v, want %v", name, err, ErrNotFound)
		}
		if _, _, err := d.List(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("List(%q) = %v, want %v", name, err, ErrNotFound)
		}
		if _, err := d.Sub(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("Sub(%q) = %v, want %v", name, err, ErrNotFound)
		}
	}
	if _, err := d.ReadAll("../a.json", 10); !errors.Is(err, ErrOutside) {
		t.Errorf("ReadAll(../a.json) = %v, want %v", err, ErrOutside)
	}
	for name, list := range map[string]func() (int, error){
		"List":  func() (int, error) { e, _, err := d.List("."); return len(e), err },
		"Names": func() (int, error) { e, _, err := d.Names(10); return len(e), err },
		"Digest": func() (int, error) {
			tree, err := d.Digest(t.Context(), nil)
			if err != nil {
				return 0, err
			}
			return len(tree.Files), nil
		},
	} {
		if n, err := list(); n != 1 || err != nil {
			t.Errorf("%s = %d entries, %v, want 1", name, n, err)
		}
	}

	// A link in its place is not read; the digest covers the link itself.
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadAll("a.json", 10); !errors.Is(err, ErrNotFound) {
		t.Errorf("ReadAll = %v, want %v", err, ErrNotFound)
	}
	if _, err := d.Digest(t.Context(), nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("Digest = %v, want %v", err, ErrNotFound)
	}
	if err := os.Symlink("b.json", filepath.Join(dir, "a.json")); err != nil {
		t.Skipf("symlinks: %v", err)
	}
	if _, err := d.ReadAll("a.json", 10); !errors.Is(err, ErrNotRegular) {
		t.Errorf("ReadAll = %v, want %v", err, ErrNotRegular)
	}
	if _, err := OpenFile(filepath.Join(dir, "gone", "a.json")); !errors.Is(err, ErrNotFound) {
		t.Errorf("OpenFile = %v, want %v", err, ErrNotFound)
	}
}
