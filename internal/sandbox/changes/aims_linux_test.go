package changes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// §9.16: files that the user's own links and git's settings lead to are protected,
// whatever their names.
func TestAims(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", t.TempDir()) // not the one in the store's options
	gitHead := "ref: refs/heads/main\n"
	for _, tc := range []struct {
		name       string
		there, run map[string]string
		want       map[string]string
	}{
		{"the folder of hooks", map[string]string{
			".git/HEAD": gitHead, ".git/config": "[core]\n\thooksPath = \"scripts/hooks\"\n\tfsmonitor = true\n",
		}, map[string]string{"scripts/hooks/pre-commit": "evil", "scripts/ok": ""}, map[string]string{
			"scripts": "mkdir applied", "scripts/hooks": "mkdir held protected", "scripts/hooks/pre-commit": "create held protected", "scripts/ok": "create applied",
		}},
		{"a link in the way of the hooks", map[string]string{
			".git/HEAD": gitHead, ".git/config": "[core]\nhooksPath=scripts/hooks\n",
		}, map[string]string{"scripts@": "x", "x/hooks/pre-commit": "evil"}, map[string]string{
			"scripts": "symlink held protected", "x": "mkdir applied", "x/hooks": "mkdir applied", "x/hooks/pre-commit": "create applied",
		}},
		{"included settings, and what they name", map[string]string{
			".git/HEAD": gitHead, ".git/config": "[include]\n\tpath = ../tools/git.inc\n",
			"tools/git.inc": "[filter \"x\"]\n\tclean = sh ./tools/clean.sh %f\n[alias] t = !grep -r x src/\n", "tools/clean.sh": "", "src/a": "",
		}, map[string]string{"tools/git.inc": "evil", "tools/clean.sh": "evil", "src/a": "x"}, map[string]string{
			"tools/git.inc": "replace held protected", "tools/clean.sh": "replace held protected", "src/a": "replace applied",
		}},
		{"repositories in the folder", map[string]string{
			"a/b/.git/HEAD": gitHead, "a/b/.git/config": "[core]\n\thooksPath = hk\n",
			"c/.git": "gitdir: ../mods/c\n", "mods/c/config": "[core]\n\thooksPath = ../shared\n",
		}, map[string]string{"a/b/hk/pre-commit": "evil", "a/b/ok": "", "shared/pre-push": "evil", "hk/x": ""}, map[string]string{
			"a/b/hk": "mkdir held protected", "a/b/hk/pre-commit": "create held protected", "a/b/ok": "create applied",
			"shared": "mkdir held protected", "shared/pre-push": "create held protected", "hk": "mkdir applied", "hk/x": "create applied",
		}},
		{"a repository deep in the folder, whose hooks are not", map[string]string{
			"x/y/z/repo/.git/HEAD": gitHead, "x/y/z/repo/.git/config": "[core]\n\thooksPath = ../../../../tools/hk\n", "tools/ok": "",
		}, map[string]string{"tools/hk/pre-commit": "evil", "tools/ok": "run"}, map[string]string{
			"tools/hk": "mkdir held protected", "tools/hk/pre-commit": "create held protected", "tools/ok": "replace applied",
		}},
		{"a path in the user's home folder", map[string]string{".git/HEAD": gitHead, ".git/config": "[core]\n\thooksPath = ~/project/hk\n"},
			map[string]string{"hk/pre-push": "evil"}, map[string]string{"hk": "mkdir held protected", "hk/pre-push": "create held protected"}},
		{"the user's own settings", map[string]string{".git/HEAD": gitHead, "bin/diff.sh": ""},
			map[string]string{"bin/diff.sh": "evil"}, map[string]string{"bin/diff.sh": "replace held protected"}},
		{"the settings of a worktree's repository", map[string]string{
			".git": "gitdir: git/worktrees/w\n", "git/worktrees/w/commondir": "../..\n", "git/config": "[core]\n\thooksPath = my\n",
		}, map[string]string{"my/pre-push": "evil"}, map[string]string{"my": "mkdir held protected", "my/pre-push": "create held protected"}},
		{"the user's links", map[string]string{"CLAUDE.md@": "docs/ai.md", "docs/ai.md": "", ".claude@": "docs/claude", "docs/claude/x": "", ".github@": "docs/gh", "docs/gh/x": ""},
			map[string]string{"docs/ai.md": "obey", "docs/claude/settings.json": "{}", "docs/gh/copilot-instructions.md": "obey", "docs/b": ""}, map[string]string{
				"docs/ai.md": "replace held protected", "docs/claude/settings.json": "create held protected",
				"docs/gh/copilot-instructions.md": "create held protected", "docs/b": "create applied",
			}},
	} {
		for _, format := range formats() {
			t.Run(tc.name+"/"+format, func(t *testing.T) {
				dir := t.TempDir()
				project := filepath.Join(home, "project")
				_ = os.Remove(project)
				do(t, os.Symlink(dir, project))
				mine := filepath.Join(home, ".gitconfig")
				do(t, os.WriteFile(mine, []byte("[diff]\n\texternal = '"+dir+"/bin/diff.sh'\n"), 0o600))
				s := openStore(t, func(o *Options) { o.GitConfig, o.Home = []string{mine}, home })
				plant(t, dir, tc.there)
				w := begin(t, s, format, Folder{Path: dir})
				for name := range tc.run {
					do(t, os.RemoveAll(filepath.Join(w.at, name)))
				}
				plant(t, w.at, tc.run)
				if diff := cmp.Diff(tc.want, states(w.finish(Ending{}))); diff != "" {
					t.Errorf("the changes are not as wanted (-want +got):\n%s", diff)
				}
			})
		}
	}
}
