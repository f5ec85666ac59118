package images

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

func TestReplacePath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths of Unix")
	}
	im := List{{At: "/home/u/pack", From: "/c/1"}, {At: "/opt/tool.json", From: "/c/2"}}
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
		// Paths that only look like the image's.
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
	ok := sandbox.Image{At: at("pack"), From: at("from")}
	tests := []struct {
		name string
		p    sandbox.Policy
		want string // of the error; empty: none
	}{
		{"good", sandbox.Policy{Images: []sandbox.Image{ok}}, ""},
		{"in a folder that the run may change", sandbox.Policy{Images: []sandbox.Image{ok}, Writable: []string{at("other")}}, ""},
		{"relative", sandbox.Policy{Images: []sandbox.Image{{At: "pack", From: at("from")}}}, "not absolute"},
		{"relative copy", sandbox.Policy{Images: []sandbox.Image{{At: at("pack"), From: "from"}}}, "not absolute"},
		{"not clean", sandbox.Policy{Images: []sandbox.Image{{At: at("pack") + "/", From: at("from")}}}, "not absolute and clean"},
		{"NUL", sandbox.Policy{Images: []sandbox.Image{{At: at("pack"), From: at("from\x00")}}}, "NUL"},
		{"no copy", sandbox.Policy{Images: []sandbox.Image{{At: at("pack"), From: at("gone")}}}, "image"},
		{"nothing there", sandbox.Policy{Images: []sandbox.Image{{At: at("gone"), From: at("from")}}}, "image at"},
		{"itself", sandbox.Policy{Images: []sandbox.Image{{At: at("pack"), From: at("pack")}}}, "in each other"},
		{"in itself", sandbox.Policy{Images: []sandbox.Image{{At: at("pack"), From: at("pack/sub")}}}, "in each other"},
		{"around itself", sandbox.Policy{Images: []sandbox.Image{{At: at("pack"), From: dir}}}, "in each other"},
		{"everything", sandbox.Policy{Images: []sandbox.Image{{At: filepath.VolumeName(dir) + string(filepath.Separator), From: at("from")}}}, "in each other"},
		{"two in one place", sandbox.Policy{Images: []sandbox.Image{ok, {At: at("pack"), From: at("other")}}}, "in each other"},
		{"one in the other", sandbox.Policy{Images: []sandbox.Image{ok, {At: at("pack/sub"), From: at("other")}}}, "in each other"},
		{"a chain", sandbox.Policy{Images: []sandbox.Image{ok, {At: at("from"), From: at("other")}}}, "in each other"},
		{"may change it", sandbox.Policy{Images: []sandbox.Image{ok}, Writable: []string{at("pack")}}, "writable"},
		{"may change a part", sandbox.Policy{Images: []sandbox.Image{ok}, Writable: []string{at("pack/sub")}}, "writable"},
		{"may change the copy", sandbox.Policy{Images: []sandbox.Image{ok}, Writable: []string{at("from")}}, "writable"},
		{"may change what the copy is in", sandbox.Policy{Images: []sandbox.Image{ok}, Writable: []string{dir}}, "writable"},
	}
	if os.Symlink(at("pack"), at("link")) == nil && os.Symlink(at("pack/sub"), at("into")) == nil {
		tests = append(tests, []struct {
			name string
			p    sandbox.Policy
			want string
		}{
			{"a link", sandbox.Policy{Images: []sandbox.Image{{At: at("link"), From: at("from")}}}, "symbolic link"},
			{"through a link", sandbox.Policy{Images: []sandbox.Image{{At: at("link/sub"), From: at("from")}}}, "symbolic link"},
			{"a copy through a link", sandbox.Policy{Images: []sandbox.Image{{At: at("from"), From: at("link")}}}, ""},
			{"a copy of itself through a link", sandbox.Policy{Images: []sandbox.Image{{At: at("pack"), From: at("link")}}}, "in each other"},
			{"may change a part through a link", sandbox.Policy{Images: []sandbox.Image{ok}, Writable: []string{at("into")}}, "writable"},
		}...)
	}
	for _, tt := range tests {
		_, err := Open(&tt.p)
		// The caller cannot prevent this: the folder was there before.
		if e, ok := errors.AsType[*sandbox.CommandError](err); ok && e.Folder != (tt.want == "image at" || tt.want == "symbolic link") {
			t.Errorf("%s: Open = %v, about a folder: %v", tt.name, err, e.Folder)
		}
		if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, new(*sandbox.CommandError)) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Open = %v, want %q", tt.name, err, tt.want)
		}
	}
}
