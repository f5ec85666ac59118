package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// The git folder that a worktree or a submodule needs is found.
func TestOuterGit(t *testing.T) {
	for name, p := range servertest.GitProjects(t) {
		if got, _ := outerGit(p[0]); got != p[1] {
			t.Errorf("%s: outerGit = %q, want %q", name, got, p[1])
		}
	}
}

// A .git file that names any other folder opens nothing.
func TestGitFilesThatLie(t *testing.T) {
	projects := servertest.GitProjects(t)
	home := t.TempDir()
	testdata.Plant(t, home, "-- .ssh/id_ed25519 --\nsecret\n-- .ssh/HEAD --\nref: x\n")
	main := filepath.Join(filepath.Dir(projects["worktree"][0]), "main")
	liar := func(text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".git"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, dir := range map[string]string{
		"keys":                     liar("gitdir: " + filepath.Join(home, ".ssh") + "\n"),
		"the root":                 liar("gitdir: /\n"),
		"another repository":       liar("gitdir: " + filepath.Join(main, ".git") + "\n"),
		"another's worktree":       liar("gitdir: " + filepath.Join(main, ".git", "worktrees", "worktree") + "\n"),
		"another's module":         liar("gitdir: " + projects["submodule"][1] + "\n"),
		"a bare repository":        liar("gitdir: " + projects["worktree of a bare clone"][1] + "\n"),
		"several lines":            liar("gitdir: /\ngitdir: " + home + "\n"),
		"nothing":                  liar("gitdir:\n"),
		"no git file":              liar("hello\n"),
		"a folder that is not":     liar("gitdir: nowhere\n"),
		"too long":                 liar("gitdir: " + strings.Repeat("a", 5000) + "\n"),
		"a folder (a plain clone)": main,
		"no .git":                  home,
	} {
		if got, _ := outerGit(dir); got != "" {
			t.Errorf("%s: outerGit = %q, want nothing", name, got)
		}
	}

	// A common folder somewhere else than the worktree's own folder does not count.
	dir := liar("gitdir: own/worktrees/x\n")
	testdata.Plant(t, dir, "-- own/worktrees/x/commondir --\n"+filepath.Join(main, ".git")+"\n-- own/worktrees/x/gitdir --\n"+filepath.Join(dir, ".git")+"\n")
	if got, _ := outerGit(dir); got != "" {
		t.Errorf("a common folder elsewhere: outerGit = %q, want nothing", got)
	}
	// Neither does a link to one.
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(projects["worktree"][0], ".git"), filepath.Join(linked, ".git")); err == nil {
		if got, _ := outerGit(linked); got != "" {
			t.Errorf("a link to another's .git: outerGit = %q, want nothing", got)
		}
	}
}
