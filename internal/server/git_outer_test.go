package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/testdata"
)

const gitSkill = `
-- git/SKILL.md --
---
name: git
description: Git operations.
read_only: true
---

### git_status

Show the current git status with short format.

#### Parameters

None.

#### Command

` + "```bash\ngit status --short --branch\n```" + `
`

// The git_status of specs/skill-md-tools §8.1 works in worktrees and submodules: the
// folder that git needs there is readable, and the question says so.
func TestGitStatusInWorktrees(t *testing.T) {
	for name, p := range servertest.GitProjects(t) {
		t.Run(name, func(t *testing.T) {
			project, outer := p[0], p[1]
			w := newWorld(t, gitSkill, confined(t, sandbox.LevelFull), func(s *setup) { s.server.Project = project })
			w.answer = decide("once")
			w.initialize()
			w.enable("git")
			got, _ := w.tool("git__git_status", nil)
			if output, _ := got["output"].(string); got["success"] != true || !strings.HasPrefix(output, "## ") {
				t.Errorf("git_status = %v, want the branch", got)
			}
			if q := w.lastQuestion(); !says(q, outer) {
				t.Errorf("the question is\n%s\nwant %s among what it may read", q, outer)
			}
		})
	}
}

// Without git: write, commands that only read work in worktrees and submodules, and a
// commit does not. With it, the commit is applied as data, and everything else that
// the run left in the git folder is not.
func TestCommitInWorktrees(t *testing.T) {
	box := confined(t, sandbox.LevelFull)
	tree := testdata.Packs("acme/git")
	const look = "git status --short && git log --oneline | wc -l && git diff --stat HEAD && git stash list | grep -c stash; git rev-parse --abbrev-ref HEAD"
	const commit = `export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
		echo new >made && git add made && git commit -qm second; echo "status $?"`
	for name, p := range servertest.GitProjects(t) {
		project, outer := p[0], p[1]
		plant(t, project, "-- tracked --\none\n")
		servertest.Git(t, project, "add", ".")
		servertest.Git(t, project, "commit", "-qm", "first")
		plant(t, project, "-- tracked --\nstashed\n")
		servertest.Git(t, project, "stash", "-q")
		at := func() string {
			t.Helper()
			head, err := exec.Command("git", "-C", project, "log", "-1", "--format=%s").Output()
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(head))
		}
		world := func(t *testing.T, grants ...plan.Opening) *world {
			w := newWorld(t, tree, box, func(s *setup) { s.server.Project, s.server.Openings = project, grants })
			w.answer = decide("once")
			w.initialize()
			w.enable("git")
			return w
		}
		t.Run(name+" without the grant", func(t *testing.T) {
			w := world(t)
			got := w.ok("git__sh", map[string]any{"script": look})
			if out, _ := got["stdout"].(string); !strings.Contains(out, "\n1\n") || strings.Contains(fmt.Sprint(got["stderr"]), "fatal") {
				t.Errorf("looking around = %q\n%v", out, got["stderr"])
			}
			got, _ = w.tool("git__sh", map[string]any{"script": commit})
			if now := at(); now != "first" || strings.Contains(fmt.Sprint(got["stdout"]), "status 0") {
				t.Errorf("the branch is at %q, want first\n%v", now, got)
			}
			if got, want := w.lastQuestion(), `may change`; !says(got, want) || says(got, "commits are applied") {
				t.Errorf("the question speaks of commits:\n%s", got)
			}
			if err := os.Remove(filepath.Join(project, "made")); err != nil {
				t.Errorf("the new file is not applied: %v", err)
			}
		})
		t.Run(name+" with git: write", func(t *testing.T) {
			w := world(t, plan.Opening{Pack: "acme/git", Tool: "sh", Git: true})
			got := w.ok("git__sh", map[string]any{"script": commit + "\n" + look + `
				printf '#!/bin/sh\ntouch /tmp/x\n' >"$(git rev-parse --git-common-dir)/hooks/pre-commit"
				git config core.fsmonitor /tmp/evil`})
			if out, _ := got["stdout"].(string); !strings.HasPrefix(out, "status 0\n") {
				t.Fatalf("the commit = %q\n%v", out, got)
			}
			if now := at(); now != "second" {
				t.Errorf("the branch is at %q, want second\n%v", now, got["changes"])
			}
			servertest.Git(t, project, "fsck")
			status, err := exec.Command("git", "-C", project, "status", "--short").Output()
			if err != nil || len(status) > 0 {
				t.Errorf("git status = %q, %v, want nothing", status, err)
			}
			if _, err := os.Lstat(filepath.Join(outer, "hooks", "pre-commit")); err == nil {
				t.Error("a hook is live")
			}
			if config, err := os.ReadFile(filepath.Join(outer, "config")); err != nil || strings.Contains(string(config), "fsmonitor") {
				t.Errorf("the configuration is %s, %v, want it as it was", config, err)
			}
			if changed := fmt.Sprint(got["changes"]); !strings.Contains(changed, "hooks/pre-commit") {
				t.Errorf("changes = %v, want the hook held", changed)
			}
			if q := w.lastQuestion(); !says(q, outer) || !says(q, "commits are applied when it ends; everything else waits for you") {
				t.Errorf("the question does not say that commits come back:\n%s", q)
			}
		})
	}
}
