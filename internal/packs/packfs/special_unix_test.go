//go:build unix

package packfs

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// FS-05 of the hostile cases: only regular files are opened, and nothing blocks.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Skipf("fifo: %v", err)
	}
	if err := os.Symlink("fifo", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	names := []string{"fifo", "alias"}
	// The path of a socket must be short; a temporary directory's may not be.
	t.Chdir(dir)
	if l, err := net.Listen("unix", "socket"); err == nil {
		defer l.Close()
		names = append(names, "socket")
	}
	if err := syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR|0o644, 1<<8|3); err == nil {
		names = append(names, "device")
	}
	d := open(t, dir)
	for _, name := range names {
		if _, err := d.Read(name, 0, 0, Limits{}); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Read(%q) = %v, want %v", name, err, ErrNotRegular)
		}
		if _, err := d.ReadAll(name, 10); !errors.Is(err, ErrNotRegular) {
			t.Errorf("ReadAll(%q) = %v, want %v", name, err, ErrNotRegular)
		}
		if _, _, err := d.List(name); !errors.Is(err, ErrNotDir) {
			t.Errorf("List(%q) = %v, want %v", name, err, ErrNotDir)
		}
	}
	entries, _, err := d.List("")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want := TypeOther
		if e.Name == "alias" {
			want = TypeLink
		}
		if e.Type != want {
			t.Errorf("List: %s is a %s, want %s", e.Name, e.Type, want)
		}
	}
	tree, err := d.Digest(t.Context(), nil)
	if err != nil || len(tree.Files) != 0 {
		t.Errorf("Digest = %v, %v, want no files", tree, err)
	}
	// Special files are not in the digest, so they are in no copy either.
	if len(tree.Denied) != len(names)-1 || !tree.IsPartial() {
		t.Errorf("Digest denies %v, want all of %q but the link", tree.Denied, names)
	}
	for _, name := range names {
		if err := tree.Denies(name); !errors.Is(err, ErrNotRegular) {
			t.Errorf("Denies(%q) = %v, want %v", name, err, ErrNotRegular)
		}
	}
	at := t.TempDir()
	to, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	copied, err := d.CopyTo(t.Context(), to)
	if err != nil || copied.Digest != tree.Digest {
		t.Fatalf("CopyTo = %v, %v; want the digest of the tree", copied, err)
	}
	if entries, err := os.ReadDir(at); err != nil || len(entries) != 1 {
		t.Errorf("the copy holds %v, %v; want only the link", entries, err)
	}
}

// FS-02: while a directory and a link that leads out of it swap places, nothing outside is
// read or listed.
func TestRace(t *testing.T) {
	parent := tree(t, map[string]string{"ws/d/f": "inside", "out/f": "outside", "out/only-outside": ""})
	ws := filepath.Join(parent, "ws")
	if err := os.Symlink("../out", filepath.Join(ws, "l")); err != nil {
		t.Fatal(err)
	}
	d := open(t, ws)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, r := range [][2]string{{"d", "t"}, {"l", "d"}, {"t", "l"}} { // swap d and l
				if err := os.Rename(filepath.Join(ws, r[0]), filepath.Join(ws, r[1])); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	defer func() { close(done); <-stopped }()
	for range 3000 {
		if p, err := d.Read("d/f", 0, 0, Limits{}); err == nil {
			if string(p.Data) != "inside" {
				t.Fatalf("Read = %q", p.Data)
			}
		}
		entries, _, err := d.List("d")
		for _, e := range entries {
			if err == nil && e.Name == "only-outside" {
				t.Fatalf("List = %v", entries)
			}
		}
		if tree, err := d.Digest(t.Context(), nil); err == nil {
			for _, f := range tree.Files {
				if f.Digest != "sha256:"+hexSum("inside") {
					t.Fatalf("Digest = %v", tree)
				}
			}
		}
	}
}
