package packfs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestResolve(t *testing.T) {
	dir := tree(t, map[string]string{"a/b/file": "x", "a/top": "y", "file": "z"})
	for name, target := range map[string]string{
		"link": "file", "a/up": "../file", "a/b/far": "../../a/top", "folder": "a/b", "a/here": ".", "chain": "link", "round": "round",
		"out": "../outside", "a/out": "../../x", "abs": "/etc/passwd", "gone": "none", "slow": "./a//b/./file",
	} {
		symlink(t, target, filepath.Join(dir, filepath.FromSlash(name)))
	}
	d := open(t, dir)
	tree := digest(t, dir, nil)
	for name, want := range map[string]string{ // :: path → file; empty for none
		"file": "file", "a/b/file": "a/b/file", "link": "file", "chain": "file", "a/up": "file", "a/b/far": "a/top",
		"folder/file": "a/b/file", "folder/far": "a/top", "a/here/here/top": "a/top", "slow": "a/b/file",
		".": "", "a": "", "folder": "", "round": "", "out": "", "a/out": "", "abs": "", "none": "", "gone": "", "file/below": "",
	} {
		f, ok := tree.Resolve(name)
		if f.Path != want || ok != (want != "") {
			t.Errorf("Resolve(%q) = %q, %v, want %q", name, f.Path, ok, want)
		}
		// Reading finds the same file.
		found, err := d.ReadAll(name, 10)
		if (err == nil) != ok {
			t.Errorf("reading %q: %v, and Resolve says %v", name, err, ok)
		}
		if data, err := d.ReadAll(want, 10); ok && (err != nil || string(data) != string(found)) {
			t.Errorf("reading %q = %q, %v, want that of %q, %q", want, data, err, name, found)
		}
	}
	// Only the digested links count.
	link := filepath.Join(dir, "link")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	symlink(t, "a/top", link)
	if f, ok := tree.WithoutKept().Resolve("chain"); !ok || f.Path != "file" {
		t.Errorf("Resolve = %q, %v by a link that was another one, want %q", f.Path, ok, "file")
	}
}
