//go:build unix

package packs

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
)

// A FIFO in place of a document, a tool file, or anything else in a pack does not
// block anybody.
func TestFIFO(t *testing.T) {
	dir := writeTree(t, "-- b/SKILL.md --\nPACK b\n-- a/x --\n-- c/x --\n-- d/SKILL.md --\nPACK d\n-- d/tools/x --\n")
	for _, name := range []string{"a/SKILL.md", "c/README.md", "d/tools.json", "d/x.tool.json", "d/tools/y.tool.json", "d/data", "loose.tool.json"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Skipf("fifo: %v", err)
		}
	}
	want := []string{"a = a/SKILL.md invalid entry-unreadable", "b = b/SKILL.md", "d = d/SKILL.md", "loose = loose.tool.json/loose.tool.json invalid entry-unreadable"}
	c := scan(t, Options{Roots: []Root{{Dir: dir}}})
	if diff := cmp.Diff(want, describe(c, dir)); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
	files := NewToolFiles("")
	for _, p := range c.All() {
		if set, _, err := files.Load(p); set != nil || err != nil {
			t.Errorf("the tools of %s are %v, %v, want none", p.ID, set, err)
		}
	}
}

// An unreadable document, tool file or folder is reported, and keeps nothing else
// from being found or from being seen to change.
func TestUnreadable(t *testing.T) {
	if asSomebody(t) {
		return
	}
	dir := writeTree(t, "-- a/SKILL.md --\nPACK a\n-- b/SKILL.md --\nPACK b\n-- c/SKILL.md --\nPACK c\n-- c/inside/x --\n-- d/SKILL.md --\nPACK d\n-- d/tools.json --\n{}\n-- d/tools/x --\n")
	for _, name := range []string{"a", "b/SKILL.md", "c/inside", "d/tools.json", "d/tools"} {
		file := filepath.Join(dir, name)
		must(t, os.Chmod(file, 0))
		t.Cleanup(func() { _ = os.Chmod(file, 0o755) })
	}
	want := []string{"b = b/SKILL.md invalid entry-unreadable", "c = c/SKILL.md", "d = d/SKILL.md", "! root-unreadable", "! root-unreadable", "! root-unreadable"}
	l := library(t, dir, memo.Index{})
	if diff := cmp.Diff(want, describe(l.Catalog(t.Context()), dir)); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
	d, err := l.Catalog(t.Context()).Lookup("d")
	must(t, err)
	if _, problems, err := NewToolFiles("").Load(d); err != nil || len(problems) != 1 || problems[0].Code != CodeToolsUnreadable {
		t.Errorf("the tools of d: %v, %v, want that the file cannot be read", problems, err)
	}
	write(t, filepath.Join(dir, "c", "SKILL.md"), "---\nname: c\ndescription: new\n---\n")
	changed, err := l.Refresh(t.Context(), []string{filepath.Join(dir, "c")})
	if c, _ := l.Catalog(t.Context()).Lookup("c"); err != nil || !changed || c == nil || c.Description != "new" {
		t.Errorf("Refresh = %v, %v, and c is %+v", changed, err, c)
	}
	must(t, os.Chmod(filepath.Join(dir, "a"), 0o755))
	must(t, l.Rescan(t.Context()))
	if _, err := l.Catalog(t.Context()).Lookup("a"); err != nil {
		t.Errorf("a folder that may be read again: %v", err)
	}
}

// asSomebody runs the test again as another user if root runs it, since root may read
// everything. It reports whether it did.
func asSomebody(t *testing.T) (done bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	place, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	temp, program := filepath.Join(place, "tmp"), filepath.Join(place, "test")
	must(t, os.Mkdir(temp, 0o777))
	must(t, os.Chmod(temp, 0o777)) // whatever the umask says
	must(t, os.Chmod(place, 0o755))
	must(t, os.Chmod(filepath.Dir(place), 0o755))
	exe, err := os.Executable()
	must(t, err)
	from, err := os.Open(exe) // it may be in a folder that only root can read
	must(t, err)
	defer from.Close()
	to, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(to, from)
	must(t, err)
	must(t, to.Close())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = temp, []string{"TMPDIR=" + temp, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("root: a process of another user cannot be started here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as another user: %v\n%s", err, out)
	}
	return true
}

// A folder whose name is not a valid path on every system is left out, with the
// reason and a remedy, and keeps nothing beside it from being found.
func TestStrangeNamesSayWhy(t *testing.T) {
	dir := writeTree(t, "-- a:b/SKILL.md --\nPACK x\n-- c/d\\e/f/SKILL.md --\nPACK y\n-- c/SKILL.md --\nPACK c\n")
	c := scan(t, Options{Roots: []Root{{Dir: dir}}})
	if diff := cmp.Diff([]string{"c = c/SKILL.md", "! root-unreadable", "! root-unreadable"}, describe(c, dir)); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
	var files []string
	for _, d := range c.Problems() {
		files = append(files, d.File)
		if !strings.Contains(d.Message, fmt.Sprintf("%q", filepath.Base(d.File))) || !strings.Contains(d.Hint, "rename") {
			t.Errorf("%+v, want the name, and that it can be changed", d)
		}
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "a:b"), filepath.Join(dir, "c", `d\e`)}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
