package packfs

import (
	"errors"
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
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{name: "file", want: "file"},
		{name: "./a//b/file", want: "a/b/file"},
		{name: ".", want: "."},
		{name: "link", want: "file"},
		{name: "chain", want: "file"},
		{name: "a/up", want: "file"},
		{name: "a/b/far", want: "a/top"},
		{name: "folder/file", want: "a/b/file"},
		{name: "folder/far", want: "a/top"},
		{name: "a/here/here/top", want: "a/top"},
		{name: "folder/../file", want: "file"}, // as everywhere: a path is clean before it is looked at
		{name: "slow", want: "a/b/file"},
		{name: "round", err: ErrNotRegular},
		{name: "out", err: ErrOutside},
		{name: "a/out", err: ErrOutside},
		{name: "abs", err: ErrOutside},
		{name: "../x", err: ErrOutside},
		{name: "none", err: ErrNotFound},
		{name: "gone", err: ErrNotFound},
		{name: "file/below", err: ErrNotFound},
	} {
		got, err := d.Resolve(c.name)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("Resolve(%q) = %q, %v, want %q, %v", c.name, got, err, c.want, c.err)
		}
		if c.err != nil || c.want == "." {
			continue
		}
		// It is what reading finds.
		want, err := d.ReadAll(c.name, 10)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := d.ReadAll(got, 10); err != nil || string(data) != string(want) {
			t.Errorf("reading %q = %q, %v, want that of %q, %q", got, data, err, c.name, want)
		}
	}
	only := &Dir{root: d.root, only: "file"}
	if got, err := only.Resolve("a/top"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Resolve of what is hidden = %q, %v", got, err)
	}
}
