package packfs

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// tree writes files, whose names have slashes, to a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir string, options ...Option) *Dir {
	t.Helper()
	d, err := Open(dir, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func symlink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skipf("symlinks: %v", err)
	}
}

// AR-07 and FS-01, FS-03 of the hostile cases.
func TestPaths(t *testing.T) {
	parent := tree(t, map[string]string{
		"ws/in/a.txt": "a", "ws/..test": "b", "ws/te..st": "c", "ws/%2e%2e": "d", "ws/%2e%2e%2fx": "e",
		"ws-secret/s": "secret", "secret": "secret",
	})
	ws := filepath.Join(parent, "ws")
	symlink(t, "../secret", filepath.Join(ws, "out"))
	symlink(t, filepath.Join(parent, "secret"), filepath.Join(ws, "abs"))
	symlink(t, "..", filepath.Join(ws, "lnk"))
	symlink(t, "in", filepath.Join(ws, "dir"))
	symlink(t, "in/a.txt", filepath.Join(ws, "alias"))
	symlink(t, "round", filepath.Join(ws, "round"))
	d := open(t, ws)

	tests := []struct {
		path string
		want error // nil if it is readable
	}{
		{"in/a.txt", nil}, {"./in//a.txt", nil}, {"in/../in/a.txt", nil}, {"dir/a.txt", nil}, {"alias", nil},
		{"..test", nil}, {"te..st", nil}, {"%2e%2e", nil}, {"%2e%2e%2fx", nil},
		{"../secret", ErrOutside}, {"/etc/passwd", ErrOutside}, {"../ws-secret/s", ErrOutside}, {"in/../../secret", ErrOutside},
		{"a/../../x", ErrOutside}, {"..", ErrOutside}, {"../", ErrOutside}, {"in/../../", ErrOutside},
		{`C:\x`, ErrOutside}, {"C:/x", ErrOutside}, {"C:", ErrOutside}, {`\\srv\s`, ErrOutside}, {`in\a.txt`, ErrOutside}, {"a:ads", ErrOutside}, {"in/a.txt:x", ErrOutside},
		{"a\x00b", ErrOutside}, {"out", ErrOutside}, {"abs", ErrOutside}, {"lnk/secret", ErrOutside},
		{"lnk", ErrOutside}, {"lnk/", ErrOutside}, {"lnk//", ErrOutside}, {"lnk/.", ErrOutside},
		{"absent", ErrNotFound}, {"in/a.txt/x", ErrNotFound}, {"%2e%2e/secret", ErrNotFound}, {strings.Repeat("x", 5000), ErrNotFound},
		{"in", ErrIsDir}, {"", ErrIsDir}, {".", ErrIsDir}, {"dir/", ErrIsDir}, {"round", ErrNotRegular},
	}
	for _, tt := range tests {
		_, err := d.Read(tt.path, 0, 0, Limits{})
		if !errors.Is(err, tt.want) {
			t.Errorf("Read(%q) = %v, want %v", tt.path, err, tt.want)
		}
		if _, all := d.ReadAll(tt.path, 100); (all == nil) != (err == nil) {
			t.Errorf("ReadAll(%q) = %v, but Read = %v", tt.path, all, err)
		}
		if err != nil {
			if _, ok := errors.AsType[*PathError](err); !ok || len(err.Error()) > 1000 || strings.Contains(err.Error(), parent) {
				t.Errorf("Read(%.20q) = %q, want a short *PathError that does not name the directory", tt.path, err)
			}
		}
	}
	for _, p := range []string{"lnk", "lnk/", "lnk/.", "../", "..", "/", "out", "in/../.."} {
		if entries, _, err := d.List(p); !errors.Is(err, ErrOutside) {
			t.Errorf("List(%q) = %v, %v, want %v", p, entries, err, ErrOutside)
		}
	}
}

func TestRead(t *testing.T) {
	d := open(t, tree(t, map[string]string{"a.md": "0123456789", "empty": "", "utf.txt": "aé€😀b"}))
	tests := []struct {
		path           string
		offset, length int64
		limits         Limits
		want           string
		next           int64
		err            error
	}{
		{path: "a.md", want: "0123456789"},
		{path: "a.md", length: 4, want: "0123", next: 4},
		{path: "a.md", offset: 4, length: 4, want: "4567", next: 8},
		{path: "a.md", offset: 8, length: 4, want: "89"},
		{path: "a.md", offset: 6, length: 4, want: "6789"},
		{path: "a.md", offset: 10, want: ""},
		{path: "a.md", limits: Limits{Page: 3}, want: "012", next: 3},
		{path: "a.md", length: 1 << 40, limits: Limits{PageMax: 5}, want: "01234", next: 5},
		{path: "a.md", limits: Limits{File: 10}, want: "0123456789"},
		{path: "empty", want: ""},
		{path: "utf.txt", length: 2, want: "a", next: 1},
		{path: "utf.txt", length: 3, want: "aé", next: 3},
		{path: "utf.txt", offset: 1, length: 1, want: "é", next: 3},
		{path: "utf.txt", offset: 3, length: 2, want: "€", next: 6},
		{path: "utf.txt", offset: 6, length: 1, want: "😀", next: 10},
		{path: "a.md", offset: 11, err: ErrOffset},
		{path: "a.md", offset: -1, err: ErrOffset},
		{path: "a.md", length: -1, err: ErrOffset},
	}
	for _, tt := range tests {
		p, err := d.Read(tt.path, tt.offset, tt.length, tt.limits)
		if !errors.Is(err, tt.err) {
			t.Errorf("Read(%q, %d, %d) = %v, want %v", tt.path, tt.offset, tt.length, err, tt.err)
		}
		if err != nil {
			continue
		}
		if string(p.Data) != tt.want || p.NextOffset != tt.next || p.Truncated != (tt.next > 0) || !p.UTF8 || p.Offset != tt.offset {
			t.Errorf("Read(%q, %d, %d) = %+v, want %q, next %d", tt.path, tt.offset, tt.length, p, tt.want, tt.next)
		}
	}
	_, err := d.Read("a.md", 0, 0, Limits{File: 9})
	if e, ok := errors.AsType[*TooLargeError](err); !ok || e.Size != 10 || e.Limit != 9 {
		t.Errorf("Read = %v, want a *TooLargeError", err)
	}
	if _, err = d.ReadAll("a.md", 9); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("ReadAll = %v, want a *TooLargeError", err)
	}
	if data, err := d.ReadAll("a.md", 10); err != nil || string(data) != "0123456789" {
		t.Errorf("ReadAll = %q, %v", data, err)
	}
}

// Pages of any length, joined, equal the file, whatever its content.
func TestPagesJoin(t *testing.T) {
	text := strings.Repeat("aé€😀\n", 3000)
	files := map[string]string{ // :: name → contents
		"text": text, "late": text + "\xff\xfe" + text, "binary": "\x00\x01" + text, "cut": text[:len(text)-2],
		"continuation": strings.Repeat("\x80", 9000), "truncated runes": strings.Repeat("\xf0\x9f", 9000), "nul late": text + "\x00" + text,
	}
	for name, data := range maps.Clone(files) {
		files[name+", short"] = data[len(data)-101:]
	}
	d := open(t, tree(t, files))
	for name, want := range files {
		for _, length := range []int64{1, 2, 3, 5, 1000, 8192, 1 << 20} {
			if length < 1000 && len(want) > 1000 {
				continue // too many pages
			}
			var got bytes.Buffer
			for offset := int64(0); ; {
				p, err := d.Read(name, offset, length, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if p.UTF8 && !utf8.Valid(p.Data) || name == "binary" && p.UTF8 || name == "text" && !p.UTF8 {
					t.Fatalf("Read(%q, %d, %d): UTF8 = %v for %.20q", name, offset, length, p.UTF8, p.Data)
				}
				if int64(len(p.Data)) > length+3 || len(p.Data) == 0 {
					t.Fatalf("Read(%q, %d, %d): %d bytes", name, offset, length, len(p.Data))
				}
				got.Write(p.Data)
				if p.NextOffset == 0 {
					break
				}
				offset = p.NextOffset
			}
			if got.String() != want {
				t.Errorf("pages of %d bytes of %q are not the file", length, name)
			}
		}
	}
}

func TestMIME(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"
	files := map[string][2]string{ // :: name → contents, type
		"a.md": {"x", "text/markdown"}, "b.JSON": {"{}", "application/json"}, "c.yaml": {"a: b", "application/yaml"},
		"d.py": {"print()", "text/x-python"}, "e.png": {png, "image/png"}, "f.md": {png, "image/png"}, "noext": {"words", "text/plain"},
		"bin.txt": {"\x00\x01\x02\xff", "application/octet-stream"}, "empty.txt": {"", "text/plain"}, "script": {"#!/bin/sh\necho", "text/x-shellscript"},
	}
	contents := make(map[string]string)
	for name, f := range files {
		contents[name] = f[0]
	}
	d := open(t, tree(t, contents))
	for name, f := range files {
		p, err := d.Read(name, 0, 0, Limits{})
		if err != nil || p.MIME != f[1] {
			t.Errorf("Read(%q) = %v, %v, want the type %s", name, p, err, f[1])
		}
	}
}

func TestList(t *testing.T) {
	dir := tree(t, map[string]string{"b.txt": "12345", "a/x": "", "C": "", ".hidden": ""})
	symlink(t, "b.txt", filepath.Join(dir, "link"))
	d := open(t, dir)
	for _, p := range []string{"", ".", "./", "a/.."} {
		got, truncated, err := d.List(p)
		want := []Entry{{".hidden", TypeFile, 0}, {"C", TypeFile, 0}, {"a", TypeDir, 0}, {"b.txt", TypeFile, 5}, {"link", TypeLink, 0}}
		if diff := cmp.Diff(want, got); diff != "" || truncated || err != nil {
			t.Errorf("List(%q) = %v, %v (-want +got):\n%s", p, truncated, err, diff)
		}
	}
	if _, _, err := d.List("b.txt"); !errors.Is(err, ErrNotDir) {
		t.Errorf("List(b.txt) = %v, want %v", err, ErrNotDir)
	}
	if _, _, err := d.List("none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("List(none) = %v, want %v", err, ErrNotFound)
	}
}

func TestListLimit(t *testing.T) {
	dir := t.TempDir()
	for i := range MaxEntries + 1 {
		name := filepath.Join(dir, string([]byte{'f', byte('0' + i/1000), byte('0' + i/100%10), byte('0' + i/10%10), byte('0' + i%10)}))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir)
	got, truncated, err := d.List("")
	if err != nil || len(got) != MaxEntries || !truncated || got[0].Name != "f0000" || got[MaxEntries-1].Name != "f0999" {
		t.Errorf("List = %d entries, truncated %v, %v, want the first %d", len(got), truncated, err, MaxEntries)
	}
	if err := os.Remove(filepath.Join(dir, "f0500")); err != nil {
		t.Fatal(err)
	}
	if got, truncated, _ := d.List(""); len(got) != MaxEntries || truncated {
		t.Errorf("List = %d entries, truncated %v, want all %d", len(got), truncated, MaxEntries)
	}
}

// FS-04 of the hostile cases.
func TestHardLink(t *testing.T) {
	dir := tree(t, map[string]string{"out/secret": "s", "ws/own": "o"})
	if err := os.Link(filepath.Join(dir, "out", "secret"), filepath.Join(dir, "ws", "leak")); err != nil {
		t.Skipf("hard links: %v", err)
	}
	ws := open(t, filepath.Join(dir, "ws"), RefuseHardLinks)
	if _, err := ws.Read("leak", 0, 0, Limits{}); !errors.Is(err, ErrHardLink) {
		t.Errorf("Read(leak) = %v, want %v", err, ErrHardLink)
	}
	if _, err := ws.Read("own", 0, 0, Limits{}); err != nil {
		t.Errorf("Read(own) = %v", err)
	}
	if _, err := open(t, filepath.Join(dir, "ws")).Read("leak", 0, 0, Limits{}); err != nil {
		t.Errorf("Read(leak) of a pack = %v", err)
	}
}

// A Dir stays the directory that it opened (ZS-02).
func TestReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed")
	}
	dir := tree(t, map[string]string{"pack/a": "old", "other/a": "new"})
	d := open(t, filepath.Join(dir, "pack"))
	if err := os.Rename(filepath.Join(dir, "pack"), filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	symlink(t, "other", filepath.Join(dir, "pack"))
	if p, err := d.Read("a", 0, 0, Limits{}); err != nil || string(p.Data) != "old" {
		t.Errorf("Read = %v, %v, want the old file", p, err)
	}
}

func TestStat(t *testing.T) {
	dir := tree(t, map[string]string{"a": "12345", "b/c": "67"})
	symlink(t, "a", filepath.Join(dir, "link"))
	symlink(t, "b", filepath.Join(dir, "way"))
	d := open(t, dir)
	for name, size := range map[string]int64{"a": 5, "b/c": 2, "./a": 5} {
		if info, err := d.Stat(name); err != nil || info.Size() != size {
			t.Errorf("Stat(%q) = %v, %v, want %d bytes", name, info, err, size)
		}
	}
	for name, want := range map[string]error{
		"link": ErrNotRegular, "way/c": ErrNotRegular, "b": ErrIsDir, ".": ErrIsDir, "x": ErrNotFound, "a/x": ErrNotFound, "../a": ErrOutside, "/a": ErrOutside,
	} {
		if _, err := d.Stat(name); !errors.Is(err, want) {
			t.Errorf("Stat(%q) = %v, want %v", name, err, want)
		}
	}
}
