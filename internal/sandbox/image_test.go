package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestReplacePath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of Unix")
	}
	im := images{{At: "/home/u/pack", From: "/c/1"}, {At: "/opt/tool.json", From: "/c/2"}}
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"/home/u/pack", "/c/1"},
		{"/home/u/pack/", "/c/1/"},
		{"/home/u/pack/run.sh", "/c/1/run.sh"},
		{"--dir=/home/u/pack", "--dir=/c/1"},
		{"-I/home/u/pack/include", "-I/c/1/include"},
		{"@/home/u/pack/args", "@/c/1/args"},
		{"file:///home/u/pack/x", "file:///c/1/x"},
		{"/home/u/pack/bin:/usr/bin:/home/u/pack", "/c/1/bin:/usr/bin:/c/1"},
		{`{"dir":"/home/u/pack","n":1}`, `{"dir":"/c/1","n":1}`},
		{`cat '/home/u/pack/a' (/home/u/pack) "/home/u/pack"`, `cat '/c/1/a' (/c/1) "/c/1"`},
		{"a\n/home/u/pack\nb", "a\n/c/1\nb"},
		{"/home/u/pack /opt/tool.json", "/c/1 /c/2"},
		{"/home/u/pack/home/u/pack", "/c/1/home/u/pack"},
		// What only looks like it.
		{"/home/u/package", "/home/u/package"},
		{"/home/u/pack2/x", "/home/u/pack2/x"},
		{"/home/u/pack.old", "/home/u/pack.old"},
		{"/home/u/pack-2", "/home/u/pack-2"},
		{"/mnt/home/u/pack", "/mnt/home/u/pack"},
		{"x/home/u/pack", "x/home/u/pack"},
		{"home/u/pack", "home/u/pack"},
		{"/home/u/Pack", "/home/u/Pack"},
		{"/home/u/pac", "/home/u/pac"},
	} {
		if got := im.text(tt.in); got != tt.want {
			t.Errorf("text(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestImagesRefused(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"pack/sub", "from/sub", "other"} {
		if err := os.MkdirAll(at(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ok := Image{at("pack"), at("from")}
	tests := []struct {
		name string
		p    Policy
		want string // of the error; empty: none
	}{
		{"good", Policy{Images: []Image{ok}}, ""},
		{"in a folder that the run may change", Policy{Images: []Image{ok}, Writable: []string{at("other")}}, ""},
		{"relative", Policy{Images: []Image{{"pack", at("from")}}}, "not absolute"},
		{"relative copy", Policy{Images: []Image{{at("pack"), "from"}}}, "not absolute"},
		{"not clean", Policy{Images: []Image{{at("pack") + "/", at("from")}}}, "not absolute and clean"},
		{"NUL", Policy{Images: []Image{{at("pack"), at("from\x00")}}}, "NUL"},
		{"no copy", Policy{Images: []Image{{at("pack"), at("gone")}}}, "image"},
		{"nothing there", Policy{Images: []Image{{at("gone"), at("from")}}}, "image at"},
		{"itself", Policy{Images: []Image{{at("pack"), at("pack")}}}, "in each other"},
		{"in itself", Policy{Images: []Image{{at("pack"), at("pack/sub")}}}, "in each other"},
		{"around itself", Policy{Images: []Image{{at("pack"), dir}}}, "in each other"},
		{"everything", Policy{Images: []Image{{filepath.VolumeName(dir) + string(filepath.Separator), at("from")}}}, "in each other"},
		{"two in one place", Policy{Images: []Image{ok, {at("pack"), at("other")}}}, "in each other"},
		{"one in the other", Policy{Images: []Image{ok, {at("pack/sub"), at("other")}}}, "in each other"},
		{"a chain", Policy{Images: []Image{ok, {at("from"), at("other")}}}, "in each other"},
		{"may change it", Policy{Images: []Image{ok}, Writable: []string{at("pack")}}, "writable"},
		{"may change a part", Policy{Images: []Image{ok}, Writable: []string{at("pack/sub")}}, "writable"},
		{"may change the copy", Policy{Images: []Image{ok}, Writable: []string{at("from")}}, "writable"},
		{"may change what the copy is in", Policy{Images: []Image{ok}, Writable: []string{dir}}, "writable"},
	}
	if os.Symlink(at("pack"), at("link")) == nil && os.Symlink(at("pack/sub"), at("into")) == nil {
		tests = append(tests, []struct {
			name string
			p    Policy
			want string
		}{
			{"a link", Policy{Images: []Image{{at("link"), at("from")}}}, "symbolic link"},
			{"through a link", Policy{Images: []Image{{at("link/sub"), at("from")}}}, "symbolic link"},
			{"a copy through a link", Policy{Images: []Image{{at("from"), at("link")}}}, ""},
			{"a copy of itself through a link", Policy{Images: []Image{{at("pack"), at("link")}}}, "in each other"},
			{"may change a part through a link", Policy{Images: []Image{ok}, Writable: []string{at("into")}}, "writable"},
		}...)
	}
	for _, tt := range tests {
		_, err := tt.p.openImages()
		// What the caller cannot help: the folder was there before.
		if e, ok := errors.AsType[*CommandError](err); ok && e.Folder != (tt.want == "image at" || tt.want == "symbolic link") {
			t.Errorf("%s: openImages = %v, about a folder: %v", tt.name, err, e.Folder)
		}
		if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, new(*CommandError)) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: openImages = %v, want %q", tt.name, err, tt.want)
		}
	}
}
