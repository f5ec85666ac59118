//go:build unix

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// nobody is the user for tests run by root, since root can read every file.
const nobody = 65534

// unprivileged runs the program as a user who cannot read files with mode 000, and gives the
// world's files to that user.
func (w *world) unprivileged() {
	w.t.Helper()
	if os.Getuid() != 0 {
		return
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		w.t.Skip("setpriv: not on this system, and root can read every file")
	}
	root := filepath.Dir(w.packs)
	built, err := os.ReadFile(w.program)
	if err != nil {
		w.t.Fatal(err)
	}
	binary, script := filepath.Join(root, "program"), filepath.Join(root, "as-nobody")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --reuid=%d --regid=%d --clear-groups --no-new-privs %s \"$@\"\n", setpriv, nobody, nobody, binary)
	if err := errors.Join(os.WriteFile(binary, built, 0o755), os.WriteFile(script, []byte(text), 0o755)); err != nil {
		w.t.Fatal(err)
	}
	w.program = script
	// t.TempDir is in a folder that only its owner can enter.
	tmp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		w.t.Fatal(err)
	}
	for dir := root; strings.HasPrefix(dir, tmp+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	err = filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if out, err := w.command("version").CombinedOutput(); err != nil {
		w.t.Skipf("the program does not start as another user: %v: %s", err, out)
	}
}

// An unreadable file denies itself: the pack opens, tools that need the file stay disabled,
// and approvals do not cover the file. When it becomes readable the pack has changed, so no
// earlier answer applies.
func TestUnreadableFile(t *testing.T) {
	w := newWorld(t)
	w.unpack(filepath.Join("testdata", "denied.txtar"))
	pack := filepath.Join(w.packs, "partial")
	denied := filepath.Join(pack, "lib", "denied.sh")
	if err := errors.Join(os.Symlink("lib/denied.sh", filepath.Join(pack, "alias")), syscall.Mkfifo(filepath.Join(pack, "lib", "pipe"), 0o644)); err != nil {
		t.Skip(err)
	}
	w.unprivileged()
	closed := filepath.Join(pack, "closed")
	t.Cleanup(func() { _ = os.Chmod(closed, 0o755) }) // so that it can be removed
	if err := errors.Join(os.Chmod(denied, 0), os.Chmod(closed, 0)); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{{"show", "partial", "--packs", w.packs}, {"list", "--packs", w.packs}, {"list", "--all", "--packs", w.packs}, {"validate", pack}} {
		out, err := w.command(args...).CombinedOutput()
		for _, want := range []string{"lib/denied.sh", "lib/pipe", "closed", "permission denied", "file-denied", `tool "interpreter" stays disabled`} {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s = %v, printed %s\nwant %q in it", args[0], err, out, want)
			}
		}
		if args[0] == "show" && strings.Count(string(out), "declared only: it needs a file") != 8 {
			t.Errorf("show printed %s\nwant 8 of 10 tools as ones that need a file", out)
		}
	}

	c := w.connect(v20251125, choose("chat"))
	c.list()
	c.ok("capability_packs_open_docs", map[string]any{"pack_id": "partial"})
	if got := c.ok("capability_packs_read_file", map[string]any{"pack_id": "partial", "path": "docs/guide.md"})["content"]; got != "Read me.\n" {
		t.Errorf("read_file of another file = %q, want its content", got)
	}
	for _, path := range []string{"lib/denied.sh", "./lib/../lib/denied.sh", "alias", "closed/x.sh", "lib/pipe"} {
		if e := c.refused("capability_packs_read_file", map[string]any{"pack_id": "partial", "path": path}); e["code"] != "path_denied" {
			t.Errorf("read_file(%q) = %v, want path_denied", path, e)
		}
	}
	if resources, err := c.ListResources(t.Context(), nil); err != nil || len(resources.Resources) == 0 {
		t.Errorf("ListResources = %v, %v; want those of the pack's", resources, err)
	}
	for uri, served := range map[string]bool{
		"skill://partial/docs/guide.md": true, "skill://partial/SKILL.md": true, "skill://partial/lib/denied.sh": false, "skill://partial/closed/x.sh": false, "skill://partial/lib/pipe": false,
	} {
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); (err == nil) != served {
			t.Errorf("ReadResource(%q) = %v, want it served: %v", uri, err, served)
		}
	}
	if prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "partial"}); err != nil || len(prompt.Messages) == 0 {
		t.Errorf("GetPrompt = %v, %v; want the document", prompt, err)
	}

	enabled := c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "partial"})
	var names []string
	for _, tool := range enabled["tools"].([]any) {
		names = append(names, tool.(map[string]any)["tool"].(string))
	}
	if !slices.Equal(names, []string{"go", "given"}) {
		t.Errorf("enabled = %q, want only the tools that need no denied file", names)
	}
	c.changed()
	c.list()

	c.questions()
	for _, file := range []string{"lib/denied.sh", "./lib/denied.sh", "lib/../lib/denied.sh", "alias", denied, "--rcfile=lib/denied.sh", "closed/x.sh", "lib/pipe"} {
		if e := c.refused("partial__given", map[string]any{"file": file}); e["code"] != "path_denied" && e["code"] != "invalid_arguments" {
			t.Errorf("given(%q) = %v, want path_denied", file, e)
		}
	}
	if asked := c.questions(); len(asked) > 0 {
		t.Errorf("the person was asked about calls that cannot work: %v", asked)
	}
	run := func() string {
		t.Helper()
		out, _ := c.ok("partial__go", nil)["stdout"].(string)
		return out
	}
	if out := run(); out != "approved\n" {
		t.Errorf("go printed %q, want nothing of what is denied", out)
	}
	if asked := c.questions(); len(asked) != 1 {
		t.Errorf("the person was asked %d times about the first run, want once", len(asked))
	}
	if out := run(); out != "approved\n" || len(c.questions()) > 0 {
		t.Errorf("go printed %q, or asked again under an answer for the chat", out)
	}

	// The answer was for a pack without the file; with it, the pack is different.
	if err := os.Chmod(denied, 0o755); err != nil {
		t.Fatal(err)
	}
	c.answers(choose("deny"))
	if e := c.refused("partial__go", nil); e["code"] != "denied" || len(c.questions()) != 1 {
		t.Errorf("go with the file readable = %v, want a question, which is denied", e)
	}
	// The file becomes readable while the person reads the question.
	if err := os.Chmod(denied, 0); err != nil {
		t.Fatal(err)
	}
	times := 0
	c.answers(func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		if times++; times > 1 {
			return choose("deny")(ctx, p)
		}
		if err := os.Chmod(denied, 0o755); err != nil {
			t.Error(err)
		}
		return choose("once")(ctx, p)
	})
	if e := c.refused("partial__go", nil); e["code"] != "denied" || times == 0 {
		t.Errorf("go, with a file that became readable during the question, = %v after %d questions, want a denial", e, times)
	}
	c.close()
}
