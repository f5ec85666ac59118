package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repo makes a repository with two commits.
func repo(t testing.TB, dir string, args ...string) {
	git(t, dir, append([]string{"init", "-q", "-b", "main"}, args...)...)
	plant(t, dir, map[string]string{"a": "1\n", "d/b": "1\n", "CLAUDE.md": "mine\n"})
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "one")
	plant(t, dir, map[string]string{"a": "1\n2\n"})
	git(t, dir, "commit", "-qam", "two")
	git(t, dir, "gc", "-q") // puts old objects into a pack
}

func TestGitReadsLeaveNothing(t *testing.T) {
	for _, format := range formats() {
		s, dir := openStore(t, nil), t.TempDir()
		repo(t, dir)
		plant(t, dir, map[string]string{"a": "dirty\n"})
		w := begin(t, s, format, Folder{Path: dir})
		for _, args := range [][]string{{"status"}, {"log"}, {"diff"}, {"stash", "list"}} {
			git(t, w.at, args...)
		}
		if set := w.finish(Ending{}); len(set.Changes) != 0 {
			t.Errorf("%s: %v", format, states(set))
		}
	}
}

func TestGitWrite(t *testing.T) {
	for _, format := range formats() {
		for _, object := range []string{"sha1", "sha256"} {
			t.Run(format+"/"+object, func(t *testing.T) {
				s, dir := openStore(t, nil), t.TempDir()
				repo(t, dir, "--object-format="+object)
				plant(t, dir, map[string]string{"staged": "by the user\n"})
				git(t, dir, "add", "staged")
				before := git(t, dir, "rev-parse", "HEAD")
				w := begin(t, s, format, Folder{Path: dir})
				plant(t, w.at, map[string]string{"a": "run\n", "n/m": "run\n"})
				git(t, w.at, "add", "a", "n/m")
				git(t, w.at, "commit", "-qm", "three", "a", "n/m")
				git(t, w.at, "tag", "-am", "x", "v1")
				git(t, w.at, "branch", "side/topic")
				want := git(t, w.at, "rev-parse", "HEAD", "v1", "side/topic")
				set := w.finish(Ending{GitWrite: true})
				got := states(set)
				for _, ref := range []string{"refs/heads/main", "refs/heads/side/topic", "refs/tags/v1"} {
					if got[".git/"+ref] != "git applied" {
						t.Errorf("%s: %q; %+v", ref, got[".git/"+ref], set.Changes)
					}
				}
				if set.Count(Applied) != len(set.Changes) {
					t.Errorf("not all was applied: %v", got)
				}
				if now := git(t, dir, "rev-parse", "HEAD", "v1", "side/topic"); now != want {
					t.Errorf("references are %s, want %s", now, want)
				}
				git(t, dir, "fsck", "--strict", "--full")
				if status := git(t, dir, "status", "--porcelain"); status != "A  staged\n" {
					t.Errorf("status:\n%s", status)
				}
				if locks, _ := filepath.Glob(filepath.Join(dir, ".git", "*.lock")); len(locks) > 0 {
					t.Errorf("locks are left: %v", locks)
				}
				undo, err := s.Undo(t.Context(), set.ID)
				do(t, err)
				if undo.Count(Applied) != len(undo.Changes) {
					t.Errorf("not all was undone: %+v", undo.Changes)
				}
				if now := git(t, dir, "rev-parse", "HEAD"); now != before {
					t.Errorf("after Undo HEAD is %s, want %s", now, before)
				}
				if status := git(t, dir, "status", "--porcelain"); !strings.HasPrefix(status, "A  staged\n") {
					t.Errorf("status after Undo:\n%s", status)
				}
			})
		}
	}
}

// Everything else that a run does in a git folder is held. If its commits must not be
// applied, all of it is held.
func TestGitWriteHolds(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, at, dir string)
		end  Ending
		want map[string]string
		text string // in the reason of the first
	}{
		{"a hook beside a commit", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"a": "run\n", ".git/hooks/post-commit": "x"})
			git(t, at, "commit", "-qam", "three")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "git applied", ".git/hooks/post-commit": "create held git"}, ""},
		{"no grant", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"a": "run\n"})
			git(t, at, "commit", "-qam", "three")
		}, Ending{}, map[string]string{".git/refs/heads/main": "create held git", ".git/index": "replace held git", "a": "replace applied"}, ""},
		{"a protected file in a commit", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"CLAUDE.md": "run\n"})
			git(t, at, "commit", "-qam", "three")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "create held git"}, "CLAUDE.md"},
		{"a protected file between two commits", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{".envrc": "run\n"})
			git(t, at, "add", "-f", ".envrc")
			git(t, at, "commit", "-qm", "three")
			git(t, at, "rm", "-q", ".envrc")
			git(t, at, "commit", "-qm", "four")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "create held git"}, ".envrc"},
		{"a link in a commit that leads out", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"x@": "../../outside"})
			git(t, at, "add", "x")
			git(t, at, "commit", "-qm", "three")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "create held git"}, "leads out of the folder"},
		{"a link in a commit in the place of a protected folder", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"gh/copilot-instructions.md": "obey\n", ".github@": "gh"})
			git(t, at, "add", ".")
			git(t, at, "commit", "-qm", "three")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "create held git"}, ".github/"},
		{"a hook by git's settings in a commit", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"hk/pre-commit": "evil\n"})
			git(t, at, "add", ".")
			git(t, at, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "three")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "create held git"}, "hk/pre-commit"},
		{"a merge of the user's branches", func(t *testing.T, at, _ string) {
			git(t, at, "merge", "-q", "--no-edit", "other")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "git applied"}, ""},
		{"the branch moved meanwhile", func(t *testing.T, at, dir string) {
			plant(t, at, map[string]string{"a": "run\n"})
			git(t, at, "commit", "-qam", "three")
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "by the user")
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "git held conflict"}, ""},
		{"git is at work", func(t *testing.T, at, dir string) {
			plant(t, at, map[string]string{"a": "run\n"})
			git(t, at, "commit", "-qam", "three")
			do(t, os.WriteFile(filepath.Join(dir, ".git/index.lock"), nil, 0o644))
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "git held conflict"}, "index.lock"},
		{"a reference with an odd name", func(t *testing.T, at, _ string) {
			head := strings.TrimSpace(git(t, at, "rev-parse", "HEAD"))
			plant(t, at, map[string]string{".git/refs/heads/x..y": head + "\n"})
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/x..y": "create held git"}, "x..y"},
		{"an object with another content", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"a": "run\n"})
			git(t, at, "commit", "-qam", "three")
			id := strings.TrimSpace(git(t, at, "rev-parse", "HEAD:a"))
			other := strings.TrimSpace(git(t, at, "hash-object", "-w", "--", "/etc/hostname"))
			object := func(id string) string { return filepath.Join(at, ".git/objects", id[:2], id[2:]) }
			data, err := os.ReadFile(object(other))
			do(t, err)
			do(t, os.Remove(object(id)))
			do(t, os.WriteFile(object(id), data, 0o444))
		}, Ending{GitWrite: true}, map[string]string{".git/refs/heads/main": "create held git"}, "has the name"},
		{"review", func(t *testing.T, at, _ string) {
			plant(t, at, map[string]string{"a": "run\n"})
			git(t, at, "commit", "-qam", "three")
		}, Ending{GitWrite: true, Review: true}, map[string]string{".git/refs/heads/main": "git held review", "a": "replace held review"}, ""},
	} {
		for _, format := range formats() {
			t.Run(tc.name+"/"+format, func(t *testing.T) {
				s, dir := openStore(t, nil), t.TempDir()
				repo(t, dir)
				git(t, dir, "config", "core.hooksPath", "hk")
				git(t, dir, "checkout", "-qb", "other")
				plant(t, dir, map[string]string{"c": "1\n"})
				git(t, dir, "add", "c")
				git(t, dir, "commit", "-qm", "other")
				git(t, dir, "checkout", "-q", "main")
				git(t, dir, "commit", "-q", "--allow-empty", "-m", "so that it is no fast-forward")
				git(t, dir, "pack-refs", "--all", "--prune")
				w := begin(t, s, format, Folder{Path: dir})
				tc.run(t, w.at, dir)
				set := w.finish(tc.end)
				got := states(set)
				for p, want := range tc.want {
					if got[p] != want {
						t.Errorf("%q = %q, want %q", p, got[p], want)
					}
				}
				found := tc.text == ""
				for _, c := range set.Changes {
					found = found || strings.Contains(c.Reason, tc.text)
				}
				if !found {
					t.Errorf("no reason has %q: %+v", tc.text, set.Changes)
				}
				_ = os.Remove(filepath.Join(dir, ".git/index.lock"))
				git(t, dir, "fsck")
				if !tc.end.Review {
					return
				}
				applied, err := s.Apply(t.Context(), set.ID, "")
				do(t, err)
				if applied.Count(Applied) != len(applied.Changes) {
					t.Errorf("Apply: %+v", applied.Changes)
				}
				if status := git(t, dir, "status", "--porcelain") + git(t, dir, "log", "-1", "--format=%s"); status != "three\n" {
					t.Errorf("after Apply: %s", status)
				}
			})
		}
	}
}

// A worktree's git folder is elsewhere, so it is a separate folder in the turn.
func TestGitWorktree(t *testing.T) {
	s, main, tmp := openStore(t, nil), t.TempDir(), t.TempDir()
	repo(t, main)
	tree := filepath.Join(tmp, "wt")
	git(t, main, "worktree", "add", "-q", "-b", "topic", tree)
	outer := Folder{Path: filepath.Join(main, ".git"), Git: &GitFolder{Dir: "worktrees/wt", Common: "."}}
	w := begin(t, s, "copy", outer)
	cmdDir := filepath.Join(tmp, "run")
	do(t, os.Mkdir(cmdDir, 0o755))
	plant(t, cmdDir, map[string]string{"a": "worktree\n", "d/b": "1\n", "CLAUDE.md": "mine\n"})
	args := []string{"--git-dir=" + filepath.Join(w.at, "worktrees/wt"), "--work-tree=" + cmdDir}
	git(t, cmdDir, append(args, "commit", "-qam", "in the worktree")...)
	set := w.finish(Ending{GitWrite: true})
	if got := states(set); got["refs/heads/topic"] != "git applied" {
		t.Fatalf("%+v", set.Changes)
	}
	if log := git(t, tree, "log", "-1", "--format=%s"); log != "in the worktree\n" {
		t.Errorf("log: %s", log)
	}
	plant(t, tree, map[string]string{"a": "worktree\n"})
	if status := git(t, tree, "status", "--porcelain"); status != "" {
		t.Errorf("status: %s", status)
	}
}

// A held commit says which files it changes.
func TestGitWriteShown(t *testing.T) {
	s, dir := openStore(t, nil), t.TempDir()
	repo(t, dir)
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"a": "run\n", "n/m\x1b": "run\n", "gone": "1\n"})
	git(t, w.at, "add", ".")
	git(t, w.at, "commit", "-qm", "three")
	git(t, w.at, "rm", "-q", "gone")
	for i := range 250 {
		plant(t, w.at, map[string]string{fmt.Sprintf("many/%03d", i): ""})
	}
	git(t, w.at, "add", ".")
	git(t, w.at, "commit", "-qm", "four")
	set := w.finish(Ending{GitWrite: true, Review: true})
	v, err := s.Show(t.Context(), set.ID, ".git/refs/heads/main")
	do(t, err)
	for _, want := range []string{"    M \"a\"\n", "    A \"many/000\"\n", "and 52 more"} {
		if !strings.Contains(v.Text(), want) {
			t.Errorf("the view lacks %q:\n%s", want, v.Text())
		}
	}
	if strings.Contains(v.Text(), "gone") || strings.Contains(v.Text(), "\x1b") {
		t.Errorf("the view has what it should not:\n%q", v.Text())
	}
}
