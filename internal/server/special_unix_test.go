//go:build unix

package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Anything but a regular file is refused at once; opening a FIFO would block until
// its other end is opened.
func TestReadSpecialFiles(t *testing.T) {
	w := newWorld(t, filesPack)
	w.answer = decide("once")
	dir := filepath.Join(w.root, "files")
	w.put("secret.txt", "outside", 0o644)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	must(os.Symlink("../secret.txt", filepath.Join(dir, "out")))
	must(os.Symlink(filepath.Join(w.root, "secret.txt"), filepath.Join(dir, "absolute")))
	must(os.Symlink("..", filepath.Join(dir, "up")))
	must(os.Symlink("/dev/zero", filepath.Join(dir, "zero")))
	must(os.Symlink("loop", filepath.Join(dir, "loop")))
	must(os.Symlink("a.md", filepath.Join(dir, "inside")))
	must(os.Symlink("fifo", filepath.Join(dir, "tofifo")))
	must(os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	w.initialize()
	for path, code := range map[string]string{
		"fifo": "path_denied", "tofifo": "path_denied", "out": "path_denied", "absolute": "path_denied", "zero": "path_denied",
		"loop": "path_denied", "up": "path_denied", "up/secret.txt": "path_denied", "up/.": "path_denied", "up//": "path_denied",
		"up/files/a.md": "path_denied", "dangling": "not_found",
	} {
		w.fails(code, "capability_packs_read_file", map[string]any{"pack_id": "files", "path": path})
	}
	if got := w.ok("capability_packs_read_file", map[string]any{"pack_id": "files", "path": "inside"}); got["content"] != "alpha\n" {
		t.Errorf("a link that stays inside = %v, want what it leads to", got)
	}
	var types []string
	for _, e := range objects(w.ok("capability_packs_read_file", map[string]any{"pack_id": "files", "path": "."})["entries"]) {
		if e["type"] != "file" && e["type"] != "dir" {
			types = append(types, e["name"].(string)+":"+e["type"].(string))
		}
	}
	if got, want := strings.Join(types, " "), "absolute:link dangling:link fifo:other inside:link loop:link out:link tofifo:link up:link zero:link"; got != want {
		t.Errorf("the listing has %q, want %q", got, want)
	}
}

func TestReadSocket(t *testing.T) {
	w := newWorld(t, filesPack)
	w.answer = decide("once")
	// The path of a socket must be short on every system.
	l, err := net.Listen("unix", filepath.Join(w.root, "files", "s"))
	if err != nil {
		t.Skipf("unix socket: %v", err)
	}
	defer l.Close()
	w.initialize()
	w.fails("path_denied", "capability_packs_read_file", map[string]any{"pack_id": "files", "path": "s"})
}

// A run can leave anything in the workspace, so it is read with the same care. A hard
// link to a file outside cannot be distinguished from a copy by its path.
func TestReadWorkspaceSpecialFiles(t *testing.T) {
	w := newWorld(t, `
-- maker/SKILL.md --
---
name: maker
description: Makes things.
---
-- maker/make.sh --
#!/bin/sh
mkfifo fifo
ln -s /etc/passwd link
ln "$1" hard
mkdir dir
printf 'a\033[31mb' > "$(printf 'odd\033\nname')"
echo fine > fine.txt
`)
	w.answer = decide("once")
	outside := filepath.Join(w.srv.opts.Workspaces, "outside.txt") // the same file system
	if err := os.WriteFile(outside, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.initialize()
	ran := w.ok("capability_packs_exec_best_effort", map[string]any{"pack_id": "maker", "command": "./make.sh", "args": []string{outside}})
	for path, code := range map[string]string{"fifo": "path_denied", "link": "path_denied", "hard": "path_denied"} {
		w.fails(code, "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": path})
	}
	var artifacts []string
	for _, a := range objects(ran["artifacts"]) {
		artifacts = append(artifacts, a["path"].(string))
	}
	notes := strings.Join(texts(ran["notes"]), "\n")
	for _, name := range []string{"fifo", "link", "hard"} {
		if !strings.Contains(notes, name) || strings.Contains(strings.Join(artifacts, " "), name) {
			t.Errorf("%s: artifacts %q, notes %q, want it skipped with a reason", name, artifacts, notes)
		}
	}
	if text := strings.Join(artifacts, " ") + notes; strings.ContainsAny(text, "\x1b\n") && strings.Contains(text, "\x1b") {
		t.Errorf("a name reaches the client with its escape sequence: %q", text)
	}
	if !strings.Contains(strings.Join(artifacts, " "), "fine.txt") {
		t.Errorf("artifacts = %q, want fine.txt", artifacts)
	}
}

// FS-01, FS-04 and FS-05 for resources: what is not a regular file of the pack or of
// the workspace does not exist, is in no folder listing and in no manifest, and does
// not block anybody.
func TestSpecialResources(t *testing.T) {
	w := newWorld(t, filesPack)
	w.answer = decide("chat")
	w.initialize()
	c := w.srv.chats.All()[0]
	secret := filepath.Join(w.root, "secret.txt")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(secret, []byte("outside"), 0o644))
	var uris []string
	for _, at := range []struct{ dir, uri string }{{filepath.Join(w.root, "files"), "skill://files"}, {c.Workspaces.First().Dir, "workspace://" + c.Workspaces.First().Handle}} {
		must(unix.Mkfifo(filepath.Join(at.dir, "fifo"), 0o644))
		must(os.Symlink(secret, filepath.Join(at.dir, "out")))
		must(os.Symlink("fifo", filepath.Join(at.dir, "tofifo")))
		must(os.Symlink("..", filepath.Join(at.dir, "up")))
		must(os.Symlink("/dev/zero", filepath.Join(at.dir, "zero")))
		for _, name := range []string{"fifo", "out", "tofifo", "up", "up/secret.txt", "up/files/a.md", "zero"} {
			uris = append(uris, at.uri+"/"+name)
		}
	}
	must(os.Link(secret, filepath.Join(c.Workspaces.First().Dir, "hard"))) // in a folder that programs write to
	uris = append(uris, "workspace://"+c.Workspaces.First().Handle+"/hard")
	must(os.WriteFile(filepath.Join(c.Workspaces.First().Dir, "\x1b[2J\u202e.txt"), []byte("odd"), 0o644))
	for _, uri := range uris {
		for _, method := range []string{"resources/read", "resources/subscribe"} {
			if code, _ := w.refused(false, method, map[string]any{"uri": uri}); code != -32002 {
				t.Errorf("%s %s: %d, want -32002", method, uri, code)
			}
		}
		if code, _ := w.refused(false, "resources/directory/read", map[string]any{"uri": uri}); code != -32602 {
			t.Errorf("%s as a folder: %d, want -32602", uri, code)
		}
	}
	for uri, want := range map[string][]string{
		"workspace://" + c.Workspaces.First().Handle: {`\x1b[2J\u202e.txt`, "hard"},
	} {
		children, _ := w.all("resources/directory/read", "resources", map[string]any{"uri": uri})
		if got := field(children, "name"); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s has %q, want %q", uri, got, want)
		}
		if got := w.read(children[0]["uri"].(string)); got["text"] != "odd" {
			t.Errorf("the file with an odd name = %v", got)
		}
	}
	children, _ := w.all("resources/directory/read", "resources", map[string]any{"uri": "skill://files"})
	entries, _ := w.all("skills/list", "skills", nil)
	for _, all := range [][]map[string]any{children, objects(entries[0]["resources"])} {
		for _, uri := range field(all, "uri") {
			for _, bad := range uris {
				if uri == bad {
					t.Errorf("%s is listed", uri)
				}
			}
		}
	}
}
