package changes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
)

// hostile-cases.md §9.16 and §9.17, and the refusals of N2: each row is a run that
// must leave nothing in the folder that another program obeys.
func TestHostile(t *testing.T) {
	write := func(files map[string]string) func(*testing.T, string) {
		return func(t *testing.T, at string) { plant(t, at, files) }
	}
	gitHead := "ref: refs/heads/main\n"
	for _, tc := range []struct {
		name  string
		there map[string]string
		run   func(t *testing.T, at string)
		want  map[string]string // :: path → its state; all other changes are applied
	}{
		{"9.16 nested instructions", nil, write(map[string]string{"sub/CLAUDE.md": "x", "sub/.envrc": "x", "sub/ok": "x"}),
			map[string]string{"sub/CLAUDE.md": "create held protected", "sub/.envrc": "create held protected"}},
		{"9.16 hooks of a nested repository", map[string]string{"sub/.git/HEAD": gitHead}, write(map[string]string{"sub/.git/hooks/post-checkout": "x"}),
			map[string]string{"sub/.git/hooks": "mkdir held git", "sub/.git/hooks/post-checkout": "create held git"}},
		{"9.16 settings of other programs", nil, write(map[string]string{".copilot/mcp.json": "x", ".helix/languages.toml": "x", ".hg/hgrc": "x"}),
			map[string]string{
				".copilot": "mkdir held protected", ".copilot/mcp.json": "create held protected", ".helix": "mkdir held protected",
				".helix/languages.toml": "create held protected", ".hg": "mkdir held protected", ".hg/hgrc": "create held protected",
			}},
		{"9.16 what core.hooksPath often names", nil, write(map[string]string{".githooks/pre-commit": "x", ".husky/pre-commit": "x"}),
			map[string]string{
				".githooks": "mkdir held protected", ".githooks/pre-commit": "create held protected",
				".husky": "mkdir held protected", ".husky/pre-commit": "create held protected",
			}},
		{"9.17 a rebase's list", map[string]string{".git/HEAD": gitHead}, write(map[string]string{".git/rebase-merge/git-rebase-todo": "exec x"}),
			map[string]string{".git/rebase-merge": "mkdir held git", ".git/rebase-merge/git-rebase-todo": "create held git"}},
		{"9.17 a sequencer's strategy", map[string]string{".git/HEAD": gitHead}, write(map[string]string{".git/sequencer/opts": "x"}),
			map[string]string{".git/sequencer": "mkdir held git", ".git/sequencer/opts": "create held git"}},
		{"9.17 a crafted index", map[string]string{".git/HEAD": gitHead, ".git/index": "DIRC"}, write(map[string]string{".git/index": "DIRC.git/hooks/post-checkout"}),
			map[string]string{".git/index": "replace held git"}},
		{"9.17 a message that is a link", map[string]string{".git/HEAD": gitHead}, write(map[string]string{".git/COMMIT_EDITMSG@": "hooks/post-commit", ".git/logs/HEAD@": "../config"}),
			map[string]string{".git/COMMIT_EDITMSG": "symlink held git", ".git/logs": "mkdir held git", ".git/logs/HEAD": "symlink held git"}},
		{"9.17 the project becomes a git folder", map[string]string{".git/HEAD": gitHead}, func(t *testing.T, at string) {
			do(t, os.Remove(filepath.Join(at, ".git/HEAD")))
			plant(t, at, map[string]string{"HEAD": gitHead, "objects/": "", "refs/": "", "config": "x", "innocent": "x"})
		}, map[string]string{
			".git/HEAD": "remove held git", "HEAD": "create held git", "objects": "mkdir held git", "refs": "mkdir held git",
			"config": "create held git", "innocent": "create held git",
		}},
		{"9.17 a gitlink's folder becomes plain", map[string]string{".git/HEAD": gitHead, "sub/.git": "gitdir: ../.git/modules/sub"}, func(t *testing.T, at string) {
			do(t, os.Remove(filepath.Join(at, "sub/.git")))
			plant(t, at, map[string]string{"sub/.git/config": "x"})
		}, map[string]string{"sub/.git": "remove held git, mkdir held git", "sub/.git/config": "create held git"}},
		{"9.17 a folder that gains the rest of a git folder", map[string]string{"foo/config": "x"}, write(map[string]string{"foo/HEAD": gitHead, "foo/objects/": "", "foo/refs/": "", "ok": ""}),
			map[string]string{"foo/HEAD": "create held git", "foo/objects": "mkdir held git", "foo/refs": "mkdir held git"}},
		{"9.17 config of a folder that has the rest", map[string]string{"foo/HEAD": gitHead, "foo/objects/": "", "foo/refs/": ""}, write(map[string]string{"foo/config": "x", "foo/bar/x": "x"}),
			map[string]string{"foo/config": "create held git", "foo/bar": "mkdir held git", "foo/bar/x": "create held git"}},
		{"9.1 commondir", map[string]string{".git/HEAD": gitHead}, write(map[string]string{".git/commondir": "x", ".git/x/config": "fsmonitor = x", "d/commondir": "x"}),
			map[string]string{
				".git/commondir": "create held git", ".git/x": "mkdir held git", ".git/x/config": "create held git",
				"d": "mkdir held git", "d/commondir": "create held git",
			}},
		{"spellings of .git", nil, write(map[string]string{
			".GIT/config": "", "a/.git./config": "", "b/.git /config": "", "c/git~1/config": "", "d/.g\u200cit/config": "", "e/.git::$INDEX_ALLOCATION/config": "", "f/.GıT": "", "g/．git": "",
		}), map[string]string{
			".GIT": "mkdir held git", ".GIT/config": "create held git", "a/.git.": "mkdir held git", "a/.git./config": "create held git",
			"b/.git ": "mkdir held git", "b/.git /config": "create held git", "c/git~1": "mkdir held git", "c/git~1/config": "create held git",
			"d/.g\u200cit": "mkdir held git", "d/.g\u200cit/config": "create held git", "e/.git::$INDEX_ALLOCATION": "mkdir held git",
			"e/.git::$INDEX_ALLOCATION/config": "create held git", "f/.GıT": "create held git", "g/．git": "create held git",
		}},
		{"spellings of protected names", nil, write(map[string]string{"claude.MD": "", "x/.VSCODE/tasks.json": "", "y/ＣＬＡＵＤＥ.md": "", "z/agents.md. ": ""}),
			map[string]string{
				"claude.MD": "create held protected", "x/.VSCODE": "mkdir held protected", "x/.VSCODE/tasks.json": "create held protected",
				"y/ＣＬＡＵＤＥ.md": "create held protected", "z/agents.md. ": "create held protected",
			}},
		{"spellings that ext4 and f2fs fold", nil, write(map[string]string{
			".g\u00adit/config": "", "CLAUDE\u2060.md": "", ".env\ufe0frc": "", ".\u00dfh/config": "", "a/\u3164.vscode/x": "", "b/.g\U000e0041it": "",
		}), map[string]string{
			".g\u00adit": "mkdir held git", ".g\u00adit/config": "create held git", "CLAUDE\u2060.md": "create held protected", ".env\ufe0frc": "create held protected",
			".\u00dfh": "mkdir held protected", ".\u00dfh/config": "create held protected", "a/\u3164.vscode": "mkdir held protected", "a/\u3164.vscode/x": "create held protected",
			"b/.g\U000e0041it": "create held git",
		}},
		{"links in the place of folders with protected names", nil, write(map[string]string{
			"x/copilot-instructions.md": "obey", "x/wrapper/gradle-wrapper.jar": "code", ".github@": "x", "sub/Gradle@": "../x", ".yarn@": "x", "innocent@": "x",
		}), map[string]string{
			".github": "symlink held protected", "sub/Gradle": "symlink held protected", ".yarn": "symlink held protected",
		}},
		{"what is never applied", map[string]string{"u": "x"}, func(t *testing.T, at string) {
			p := func(n string) string { return filepath.Join(at, n) }
			do(t, unix.Mkfifo(p("fifo"), 0o644))
			do(t, unix.Mknod(p("sock"), unix.S_IFSOCK|0o644, 0))
			do(t, os.WriteFile(p("suid"), []byte("x"), 0o755))
			do(t, os.Chmod(p("suid"), 0o755|os.ModeSetuid))
			do(t, os.Chmod(p("u"), 0o755|os.ModeSetgid))
			plant(t, at, map[string]string{"out@": "../x", "abs@": "/etc/passwd", "deep/out@": "../../x", "deep/mid@": "a/../../x", "esc\x1b[31m": "x", "bidi\u202e": "x", "d\n/x": "x"})
		}, map[string]string{
			"fifo": "special refused special", "sock": "special refused special", "suid": "create refused set-id", "u": "meta refused set-id",
			"out": "symlink refused link-out", "abs": "symlink refused link-out", "deep/out": "symlink refused link-out", "deep/mid": "symlink refused link-out",
			"esc\x1b[31m": "create refused name", "bidi\u202e": "create refused name", "d\n": "mkdir refused name", "d\n/x": "create refused name",
		}},
		{"links", map[string]string{"CLAUDE.md": "x", "user@": "/tmp"}, write(map[string]string{"l@": "CLAUDE.md", "in@": "ok", "ok": "", "via@": "user/x", "d/up@": "../ok", "h@": ".git/hooks"}),
			map[string]string{"l": "symlink held protected", "via": "symlink refused link-out", "h": "symlink held protected"}},
		{"links with dots after a link", map[string]string{"user@": "/tmp"}, func(t *testing.T, at string) {
			real, err := filepath.EvalSymlinks(strings.TrimSuffix(at, "/"))
			do(t, err)
			plant(t, at, map[string]string{"rel@": "user/../x", "abs@": real + "/user/../x"})
		}, map[string]string{"rel": "symlink refused link-out", "abs": "symlink refused link-out"}},
		{"a protected file is removed with its folder", map[string]string{"d/CLAUDE.md": "x", "d/e/f": "x"}, func(t *testing.T, at string) {
			do(t, os.RemoveAll(filepath.Join(at, "d")))
			plant(t, at, map[string]string{"d": "now a file"})
		}, map[string]string{"d/CLAUDE.md": "remove held protected", "d": "rmdir held parent, create held parent"}},
	} {
		for _, format := range formats() {
			t.Run(tc.name+"/"+format, func(t *testing.T) {
				s, dir := openStore(t, nil), t.TempDir()
				plant(t, dir, tc.there)
				before := look2(t, dir)
				w := begin(t, s, format, Folder{Path: dir})
				tc.run(t, w.at)
				set := w.finish(Ending{})
				got := states(set)
				for p, state := range got {
					if want := tc.want[p]; want != "" && state != want || want == "" && !strings.HasSuffix(state, " applied") {
						t.Errorf("%q = %q, want %q", p, state, want)
					}
				}
				after := look2(t, dir)
				for p, want := range tc.want {
					if got[p] == "" {
						t.Errorf("%q is not in the set %v", p, got)
					}
					if !strings.Contains(want, "applied") && before[p] != after[p] {
						t.Errorf("%q is %q in the folder, was %q", p, after[p], before[p])
					}
				}
			})
		}
	}
}

// look2 is look for folders that contain pipes and sockets.
func look2(t testing.TB, dir string) map[string]string {
	all := map[string]string{}
	do(t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if info, e := os.Lstat(p); e == nil {
			all[rel] = info.Mode().String()
			if info.Mode().IsRegular() {
				data, _ := os.ReadFile(p)
				all[rel] += " " + string(data)
			}
		}
		return err
	}))
	return all
}

// The user's bytes win, whatever the user did during the run.
func TestConflicts(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			s, dir := openStore(t, nil), t.TempDir()
			plant(t, dir, map[string]string{
				"edited": "1", "saved": "1", "gone": "1", "removed": "1", "free": "1", "d/x": "1", "other/x": "2", "tree/a": "1", "tree/b": "1", "chmod": "1",
			})
			w := begin(t, s, format, Folder{Path: dir})
			plant(t, w.at, map[string]string{"edited": "run", "saved": "run", "gone": "run", "free": "run", "made": "run", "d/x": "run", "both/x": "run", "chmod": "run"})
			do(t, os.Remove(filepath.Join(w.at, "removed")))
			do(t, os.RemoveAll(filepath.Join(w.at, "tree")))
			w.done()
			user := func(p string) string { return filepath.Join(dir, p) }
			plant(t, dir, map[string]string{"edited": "user", "saved.tmp": "user", "made": "user", "removed": "user", "both/y": "user", "tree/new": "user"})
			do(t, os.Rename(user("saved.tmp"), user("saved")))
			do(t, os.Remove(user("gone")))
			do(t, os.Rename(user("d"), user("d.old")))
			do(t, os.Rename(user("other"), user("d"))) // its file is older than the run
			do(t, os.Chmod(user("chmod"), 0o600))
			set := w.finish(Ending{})
			got := states(set)
			for p, want := range map[string]string{
				"edited": "user", "saved": "user", "made": "user", "removed": "user", "d/x": "2", "d.old/x": "1", "free": "run", "both/y": "user", "tree/new": "user", "chmod": "1",
			} {
				if data, err := os.ReadFile(user(p)); err != nil || string(data) != want {
					t.Errorf("%q holds %q, %v, want %q; %s", p, data, err, want, got[p])
				}
			}
			if _, err := os.Lstat(user("gone")); err == nil {
				t.Errorf("what the user removed is back: %s", got["gone"])
			}
			for _, p := range []string{"edited", "saved", "made", "removed", "gone", "d/x", "chmod", "both/x"} {
				if !strings.HasSuffix(got[p], "held conflict") {
					t.Errorf("%q = %q, want it held in conflict", p, got[p])
				}
			}
			// A person who saw the change may replace their own file with it.
			if again, err := s.Apply(t.Context(), set.ID, "", "edited"); err != nil || again.Count(Applied) != 0 {
				t.Errorf("Apply of a conflict unseen = %v, %v", again, err)
			}
			v, err := s.Show(t.Context(), set.ID, "edited")
			do(t, err)
			if !strings.Contains(v.Text(), "-user") || !strings.Contains(v.Text(), "+run") {
				t.Errorf("Show = %s", v.Text())
			}
			do(t, os.WriteFile(user("edited"), []byte("newer"), 0o644))
			if _, err := s.Apply(t.Context(), set.ID, v.Token, "edited"); err == nil {
				t.Error("Apply with the token of an older view succeeded")
			}
			v, err = s.Show(t.Context(), set.ID, "edited")
			do(t, err)
			again, err := s.Apply(t.Context(), set.ID, v.Token, "edited")
			do(t, err)
			if data, _ := os.ReadFile(user("edited")); string(data) != "run" {
				t.Errorf("after Apply as shown: %q, %v", data, again.Changes)
			}
			_, err = s.Undo(t.Context(), again.ID)
			do(t, err)
			if data, _ := os.ReadFile(user("edited")); string(data) != "newer" {
				t.Errorf("after Undo: %q", data)
			}
		})
	}
}

// A file with a second name is not changed under that name, whatever a run does to
// its mode, times or attributes: the other name may be a hook.
func TestHardLinks(t *testing.T) {
	for _, format := range formats() {
		s, dir := openStore(t, nil), t.TempDir()
		plant(t, dir, map[string]string{".git/hooks/pre-commit": "x", "late": "1", "other": "1"})
		do(t, os.Link(filepath.Join(dir, ".git/hooks/pre-commit"), filepath.Join(dir, "x")))
		before := look(t, dir)
		w := begin(t, s, format, Folder{Path: dir})
		do(t, os.Chmod(filepath.Join(w.at, "x"), 0o755))
		do(t, os.Chmod(filepath.Join(w.at, "late"), 0o755))
		set := w.finish(Ending{Review: true})
		if got := states(set); got["x"] != "replace held review" || got["late"] != "meta held review" {
			t.Errorf("%s: %v", format, got)
		}
		do(t, os.Remove(filepath.Join(dir, "other")))
		do(t, os.Link(filepath.Join(dir, "late"), filepath.Join(dir, "other")))
		v, err := s.Show(t.Context(), set.ID)
		do(t, err)
		applied, err := s.Apply(t.Context(), set.ID, v.Token)
		do(t, err)
		if got := states(applied); got["x"] != "replace applied" || !strings.HasPrefix(got["late"], "meta refused") {
			t.Errorf("%s: %v", format, got)
		}
		after := look(t, dir)
		if after[".git/hooks/pre-commit"] != before[".git/hooks/pre-commit"] || !strings.HasPrefix(after["x"], "-rwxr-xr-x") || after["other"] != before["late"] {
			t.Errorf("%s: %v, was %v", format, after, before)
		}
		_, err = s.Undo(t.Context(), applied.ID)
		do(t, err)
		if after := look(t, dir); after["x"] != before["x"] {
			t.Errorf("%s: after Undo x is %q, was %q", format, after["x"], before["x"])
		}
	}
}

// A folder whose mode the user changed during the run is not removed.
func TestRemovedFolderChanged(t *testing.T) {
	for _, format := range formats() {
		s, dir := openStore(t, nil), t.TempDir()
		plant(t, dir, map[string]string{"d/": "", "e/": ""})
		w := begin(t, s, format, Folder{Path: dir})
		do(t, os.Remove(filepath.Join(w.at, "d")))
		do(t, os.Remove(filepath.Join(w.at, "e")))
		w.done()
		do(t, os.Chmod(filepath.Join(dir, "d"), 0o700))
		if got := states(w.finish(Ending{})); got["d"] != "rmdir held conflict" || got["e"] != "rmdir applied" {
			t.Errorf("%s: %v", format, got)
		}
	}
}

func TestHeldRuns(t *testing.T) {
	for _, format := range formats() {
		for _, end := range []Ending{{Killed: "the time limit"}, {Review: true}} {
			s, dir := openStore(t, nil), t.TempDir()
			plant(t, dir, map[string]string{"a": "1", "b/c": "1", "CLAUDE.md": "1\n"})
			before := look(t, dir)
			w := begin(t, s, format, Folder{Path: dir})
			plant(t, w.at, map[string]string{"a": "2", "n/m": "2", "l@": "a", "CLAUDE.md": "1\n2\n", "raw": "\x00\x01"})
			do(t, os.RemoveAll(filepath.Join(w.at, "b")))
			want := look(t, w.at)
			set := w.finish(end)
			same(t, "the folder", before, look(t, dir))
			if set.Count(Held) != len(set.Changes) {
				t.Errorf("%+v: %v", end, states(set))
			}
			v, err := s.Show(t.Context(), set.ID)
			do(t, err)
			for _, part := range []string{"+2", "replace \"CLAUDE.md\" (", "leads to \"a\"", "2 bytes, sha256:", "rmdir \"b\""} {
				if !strings.Contains(v.Text(), part) {
					t.Errorf("Show lacks %q:\n%s", part, v.Text())
				}
			}
			applied, err := s.Apply(t.Context(), set.ID, "")
			do(t, err)
			if applied.Count(Applied) != len(applied.Changes) {
				t.Errorf("Apply: %v", applied.Changes)
			}
			same(t, "after Apply", want, look(t, dir))
			if got, err := s.Get(set.ID); err != nil || got.Count(Applied) != len(got.Changes) {
				t.Errorf("the first set after Apply: %v, %v", states(got), err)
			}
			_, err = s.Undo(t.Context(), applied.ID)
			do(t, err)
			same(t, "after Undo", before, look(t, dir))
		}
	}
}

func TestDiscardAndExpiry(t *testing.T) {
	now := time.Now()
	s, dir := openStore(t, func(o *Options) { o.Now = func() time.Time { return now } }), t.TempDir()
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"AGENTS.md": "x", "CLAUDE.md": "y", "plain": "z"})
	set := w.finish(Ending{})
	got, err := s.Discard(t.Context(), set.ID[:len(set.ID)-2], "AGENTS.md")
	do(t, err)
	if states(got)["AGENTS.md"] != "create discarded protected" || states(got)["CLAUDE.md"] != "create held protected" {
		t.Errorf("Discard = %v", states(got))
	}
	// A discarded change cannot be restored, as the page says before it discards several.
	if _, err := s.Apply(t.Context(), set.ID, "", "AGENTS.md"); !errors.Is(err, ErrNothing) {
		t.Errorf("Apply of a discarded change = %v, want ErrNothing", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "AGENTS.md")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a discarded change is in the folder: %v", err)
	}
	now = now.Add(25 * time.Hour)
	list, err := s.List()
	if err != nil || len(list) != 1 || !list[0].Expired || list[0].Bytes != 0 {
		t.Fatalf("List after a day = %v, %v", list, err)
	}
	if _, err := s.Apply(t.Context(), set.ID, ""); err == nil {
		t.Error("Apply of an expired set succeeded")
	}
	now = now.Add(25 * time.Hour)
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("List after two days = %v, %v", list, err)
	}
}

func TestOwnPaths(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"tools/pack/SKILL.md": "x"})
	s := openStore(t, func(o *Options) {
		o.Own = []string{filepath.Join(dir, "tools")}
		o.Protect, o.Unprotect = []string{"*.secret"}, []string{"CODEOWNERS"}
	})
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"tools/pack/SKILL.md": "y", "x.secret": "", "CODEOWNERS": ""})
	got := states(w.finish(Ending{}))
	if got["tools/pack/SKILL.md"] != "replace held protected" || got["x.secret"] != "create held protected" || got["CODEOWNERS"] != "create applied" {
		t.Errorf("got %v", got)
	}
}

func TestRoom(t *testing.T) {
	s, dir := openStore(t, func(o *Options) { o.MaxBytes = 128 << 10 }), t.TempDir()
	plant(t, dir, map[string]string{"a": strings.Repeat("a", 100<<10)})
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"a": "b"})
	first := w.finish(Ending{})
	if first.Count(Applied) != 1 || first.UndoLost != "" {
		t.Fatalf("%v, %q", states(first), first.UndoLost)
	}
	w = begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"AGENTS.md": strings.Repeat("a", 40<<10), "CLAUDE.md": strings.Repeat("a", 40<<10)})
	got := states(w.finish(Ending{}))
	if got["AGENTS.md"] != "create held protected" || got["CLAUDE.md"] != "create refused room" {
		t.Errorf("%v", got)
	}
	if first, err := s.Get(first.ID); err != nil || first.UndoLost == "" {
		t.Errorf("the undo data of the first set was kept: %v", err)
	}
}

// Changes that could not be undone are not applied: a run that replaces or removes
// more of the user's files than the store can keep is held. A person may still apply
// it.
func TestRoomForUndo(t *testing.T) {
	for _, format := range formats() {
		t.Run(format, func(t *testing.T) {
			s, dir := openStore(t, func(o *Options) { o.MaxBytes = 64 << 10 }), t.TempDir()
			text := strings.Repeat("a", 40<<10)
			plant(t, dir, map[string]string{"a": text, "d/b": text, "c": "mine"})
			before := look(t, dir)
			w := begin(t, s, format, Folder{Path: dir})
			do(t, os.RemoveAll(filepath.Join(w.at, "a")))
			do(t, os.RemoveAll(filepath.Join(w.at, "d")))
			plant(t, w.at, map[string]string{"c": "the run's", "new": "the run's"})
			set := w.finish(Ending{})
			for _, c := range set.Changes {
				if c.State != Held || c.Why != record.WhyRoom || !strings.Contains(c.Reason, "could not be undone") {
					t.Errorf("%s is %s %s (%s), want it held for room", c.Path, c.State, c.Why, c.Reason)
				}
			}
			same(t, "the folder was changed", before, look(t, dir))
			applied, err := s.Apply(t.Context(), set.ID, "")
			do(t, err)
			if n := applied.Count(Applied); n != len(set.Changes) || applied.UndoLost == "" {
				t.Errorf("a person applied %d of %d changes, undo lost: %q", n, len(set.Changes), applied.UndoLost)
			}
			if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
				t.Error("what a person applied is not")
			}
		})
	}
}

// A newer run displaces the oldest undo data, and both sets say so. Held changes are
// never dropped for it.
func TestMadeRoom(t *testing.T) {
	s, dir := openStore(t, func(o *Options) { o.MaxBytes = 96 << 10 }), t.TempDir()
	const more, less = 60 << 10, 40 << 10 // one more, one less than half
	text := strings.Repeat("a", more)
	plant(t, dir, map[string]string{"a": text, "b": text})
	runs := 0
	run := func(name string, size int) *Set {
		t.Helper()
		w := begin(t, s, "copy", Folder{Path: dir})
		runs++
		plant(t, w.at, map[string]string{name: strings.Repeat(fmt.Sprint(runs), size)})
		return w.finish(Ending{})
	}
	first, second := run("a", more), run("b", more)
	if len(first.MadeRoom) != 0 || second.Count(Applied) != 1 || second.UndoLost != "" || !slices.Equal(second.MadeRoom, []string{first.ID}) {
		t.Errorf("second = %v, undo lost %q, made room %q; want it applied, and room made by %s", states(second), second.UndoLost, second.MadeRoom, first.ID)
	}
	if first, err := s.Get(first.ID); err != nil || !strings.Contains(first.UndoLost, second.ID) {
		t.Errorf("the first set says %q, %v; want the second one named", first.UndoLost, err)
	}
	if _, err := s.Undo(t.Context(), second.ID); err != nil {
		t.Error(err)
	}
	waits := run("CLAUDE.md", less)
	if got := states(run("a", more))["a"]; got != "replace refused room" {
		t.Errorf("beside what waits, a is %q, want it not applied", got)
	}
	if _, err := s.Discard(t.Context(), waits.ID); err != nil {
		t.Fatal(err)
	}
	if got := states(run("a", more))["a"]; got != "replace applied" {
		t.Errorf("with room again, a is %q, want it applied", got)
	}
}

// One pack's held changes take at most half of the store, in one set or several, so
// that other packs' runs can still replace files.
func TestShareOfRoom(t *testing.T) {
	s, dir := openStore(t, func(o *Options) { o.MaxBytes = 128 << 10 }), t.TempDir()
	plant(t, dir, map[string]string{"a": strings.Repeat("a", 60<<10)})
	run := func(pack string, files map[string]string) *Set {
		t.Helper()
		w := begin(t, s, "copy", Folder{Path: dir})
		w.turn.run.Pack = pack
		plant(t, w.at, files)
		return w.finish(Ending{})
	}
	text := strings.Repeat("x", 40<<10)
	first := run("greedy", map[string]string{"AGENTS.md": text, "CLAUDE.md": text, "GEMINI.md": "small"})
	if diff := cmp.Diff(map[string]string{"AGENTS.md": "create held protected", "CLAUDE.md": "create refused room", "GEMINI.md": "create held protected"}, states(first)); diff != "" {
		t.Errorf("one set (-want +got):\n%s", diff)
	}
	for _, c := range first.Changes {
		if c.State == Refused && !strings.Contains(c.Reason, "half of limits.held") {
			t.Errorf("%s is refused since %q, want its share named", c.Path, c.Reason)
		}
	}
	if got := states(run("greedy", map[string]string{"CLAUDE.md": text}))["CLAUDE.md"]; got != "create refused room" {
		t.Errorf("in a second set, CLAUDE.md is %q, want it refused", got)
	}
	if got := states(run("greedy", map[string]string{"a": "small"}))["a"]; got != "replace applied" {
		t.Errorf("what takes no room to wait in is %q, want it applied", got)
	}
	if got := states(run("other", map[string]string{"CLAUDE.md": text}))["CLAUDE.md"]; got != "create held protected" {
		t.Errorf("of another pack, CLAUDE.md is %q, want it held", got)
	}
	if _, err := s.Discard(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if got := states(run("greedy", map[string]string{"CLAUDE.md": text}))["CLAUDE.md"]; got != "create held protected" {
		t.Errorf("with room again, CLAUDE.md is %q, want it held", got)
	}
}

// git runs the real git.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		missing(t, "git", "there is no git")
	}
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+t.TempDir(),
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
