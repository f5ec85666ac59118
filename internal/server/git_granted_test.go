package server

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// files returns the files below some folders, each with a digest. It leaves out the
// index, which git may refresh.
func files(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || d.Name() == "index" {
				return err
			}
			data, err := os.ReadFile(path)
			all[path] = fmt.Sprintf("%x", sha256.Sum256(data))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A granted folder gives no access to git data in it or around it: neither to the
// project's own git folder elsewhere in it, nor to another repository's, with or
// without git: write. The question says so.
func TestGrantedFoldersWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git: not on this machine")
	}
	tree := testdata.Packs("acme/git")
	const commit = `git add made && git commit -qm second`
	script := `export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
		plant() { mkdir -p "$1/hooks"; echo evil >"$1/hooks/pre-commit"; printf '[core]\n\tfsmonitor = /tmp/evil\n' >>"$1/config"; echo x >"$1/commondir"; }
		echo made >made; ` + commit + `
		plant ../main/.git; plant ../other/.git; plant ../../own/.git; plant ../../bare.git; echo evil >../../hooked/.git/hooks/pre-commit
		for r in ../other ../../own; do (cd $r && echo made >made && ` + commit + `); done
		rm -f ../other/.git/HEAD
		exit 0`
	// At level none, the path in the worktree's .git file leads out of the run's
	// copy.
	for _, level := range []sandbox.Level{sandbox.LevelFull, sandbox.LevelPartial} {
		for _, git := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, git: write is %v", level, git), func(t *testing.T) {
				box := confined(t, level)
				root := paths.WithoutLinks(t.TempDir())
				at := func(name string) string { return filepath.Join(root, name) }
				for _, dir := range []string{"src/main", "src/other", "own", "hooked"} {
					servertest.Git(t, root, "init", "-q", "-b", "main", dir)
					servertest.Git(t, at(dir), "commit", "-q", "--allow-empty", "-m", "one")
				}
				servertest.Git(t, root, "init", "-q", "--bare", "bare.git")
				servertest.Git(t, at("src/main"), "worktree", "add", "-q", "-b", "side", at("src/project"))
				watched := []string{at("src/main/.git"), at("src/other/.git"), at("own/.git"), at("bare.git"), at("hooked/.git")}
				before := files(t, watched...)
				w := newWorld(t, tree, box, func(s *setup) {
					s.server.Project = at("src/project")
					s.server.Openings = []plan.Opening{{Pack: "acme/git", Tool: "sh", Git: git, Write: []string{at("src"), at("own"), at("bare.git"), at("hooked/.git/hooks")}}}
				})
				w.answer = decide("once")
				w.initialize()
				w.enable("git")
				got, _ := w.tool("git__sh", map[string]any{"script": script})
				if diff := cmp.Diff(before, files(t, watched...)); diff != "" {
					t.Errorf("git data in granted folders changed (-before +after):\n%s\n%v", diff, got)
				}
				if made, err := os.ReadFile(at("src/project/made")); string(made) != "made\n" {
					t.Errorf("made = %q, %v, want it applied: only git's data is not\n%v", made, err, got)
				}
				q := w.lastQuestion()
				for _, words := range []string{at("bare.git"), at("hooked/.git/hooks"), "is git's own data, which no folder grant covers"} {
					if !says(q, words) {
						t.Errorf("the question has not %q:\n%s", words, q)
					}
				}
				if says(q, "commits too") || says(q, "commits are applied when it ends") {
					t.Errorf("the question says that commits are applied:\n%s", q)
				}
				if says(q, "it is in a folder that is granted as a whole") != git {
					t.Errorf("the question does not say what git: write does not hold for:\n%s", q)
				}
			})
		}
	}
}

// The project's own commits are not applied if the project is in a granted folder,
// and the question says so.
func TestProjectInGrantedFolder(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git: not on this machine")
	}
	tree := testdata.Packs("acme/git")
	const script = `export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
		echo made >made; git add made && git commit -qm second`
	for _, inside := range []bool{true, false} {
		t.Run(fmt.Sprintf("in the granted folder is %v", inside), func(t *testing.T) {
			box := confined(t, sandbox.LevelFull)
			root := paths.WithoutLinks(t.TempDir())
			project, granted := filepath.Join(root, "src", "project"), filepath.Join(root, "lib")
			if inside {
				granted = filepath.Join(root, "src")
			}
			servertest.Git(t, root, "init", "-q", "-b", "main", project)
			servertest.Git(t, project, "commit", "-q", "--allow-empty", "-m", "one")
			if err := os.MkdirAll(granted, 0o755); err != nil {
				t.Fatal(err)
			}
			before := files(t, filepath.Join(project, ".git"))
			w := newWorld(t, tree, box, func(s *setup) {
				s.server.Project = project
				s.server.Openings = []plan.Opening{{Pack: "acme/git", Tool: "sh", Git: true, Write: []string{granted}}}
			})
			w.answer = decide("once")
			w.initialize()
			w.enable("git")
			got, _ := w.tool("git__sh", map[string]any{"script": script})
			if made, err := os.ReadFile(filepath.Join(project, "made")); string(made) != "made\n" {
				t.Errorf("made = %q, %v, want it applied\n%v", made, err, got)
			}
			q := w.lastQuestion()
			if says(q, "so its commits wait for you") != inside {
				t.Errorf("the question does not say what becomes of commits:\n%s", q)
			}
			if diff := cmp.Diff(before, files(t, filepath.Join(project, ".git"))); (diff == "") != inside {
				t.Errorf("the repository's data changed is %v (-before +after):\n%s", !inside, diff)
			}
		})
	}
}
