//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestProtected(t *testing.T) {
	const hook = ".git/hooks/pre-commit"
	tests := []struct {
		name    string
		have    []string
		protect []string
		attack  func(p *project)
		changes []string
		after   []string // the project; nil: as before
		kept    []string // the workspace
	}{
		{
			name: "nothing happens", have: []string{hook + "* good", "a.txt x"}, protect: []string{".git/hooks", ".vscode", "gone/deep/.envrc"},
			attack: func(p *project) { p.make("a.txt y"); p.make("gone/other z") },
			after:  []string{hook + "* good", "a.txt y", "gone/other z"},
		},
		{
			name: "a file is changed", have: []string{hook + "* good"}, protect: []string{".git/hooks"},
			attack:  func(p *project) { p.make(hook + "* evil") },
			changes: []string{hook + ": put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			kept:    []string{".packs-mcp/r1.protected/1 evil"},
		},
		{
			name: "a file of the same size, with its time put back", have: []string{"CLAUDE.md good"}, protect: []string{"CLAUDE.md"},
			attack: func(p *project) {
				info, err := os.Stat(p.path("CLAUDE.md"))
				p.must(err)
				p.make("CLAUDE.md evil")
				p.must(os.Chtimes(p.path("CLAUDE.md"), info.ModTime(), info.ModTime()))
			},
			changes: []string{"CLAUDE.md: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			kept:    []string{".packs-mcp/r1.protected/1 evil"},
		},
		{
			name: "a file is made executable", have: []string{hook + " good"}, protect: []string{".git/hooks"},
			attack:  func(p *project) { p.must(os.Chmod(p.path(hook), 0o755)) },
			changes: []string{hook + ": put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			kept:    []string{".packs-mcp/r1.protected/1 good"},
		},
		{
			name: "a file is gone", have: []string{hook + "* good"}, protect: []string{hook},
			attack:  func(p *project) { p.must(os.Remove(p.path(hook))) },
			changes: []string{hook + ": put back; it was gone"},
		},
		{
			name: "the same bytes are written again", have: []string{".git/config x"}, protect: []string{".git/config"},
			attack: func(p *project) {
				p.must(os.Remove(p.path(".git/config")))
				p.make(".git/config x")
			},
		},
		{
			name: "new files", have: []string{".vscode/settings.json {}", hook + " x"}, protect: []string{".vscode", ".git/hooks", ".envrc", ".github/instructions"},
			attack: func(p *project) {
				p.make(".vscode/tasks.json* evil")
				p.make(".git/hooks/post-checkout* evil2")
				p.make(".envrc evil3")
				p.make(".github/instructions/deep/x.md evil4")
				p.make(".github/workflows/ci.yaml fine")
			},
			changes: []string{
				".envrc: taken away; it is in .packs-mcp/r1.protected/1",
				".git/hooks/post-checkout: taken away; it is in .packs-mcp/r1.protected/2",
				".github/instructions: taken away; it is in .packs-mcp/r1.protected/3",
				".vscode/tasks.json: taken away; it is in .packs-mcp/r1.protected/4",
			},
			after: []string{hook + " x", ".github/workflows/ci.yaml fine", ".vscode/settings.json {}"},
			kept: []string{
				".packs-mcp/r1.protected/1 evil3", ".packs-mcp/r1.protected/2 evil2",
				".packs-mcp/r1.protected/3/deep/x.md evil4", ".packs-mcp/r1.protected/4 evil",
			},
		},
		{
			name: "a new folder with everything that files can be", protect: []string{".idea"},
			attack: func(p *project) {
				p.make(".idea/a x")
				p.make(".idea/l -> /etc/passwd")
				p.make(".idea/empty/")
				p.must(unix.Mkfifo(p.path(".idea/fifo"), 0o600))
			},
			changes: []string{".idea: taken away; it is in .packs-mcp/r1.protected/1"},
			after:   []string{},
			kept:    []string{".packs-mcp/r1.protected/1/a x", ".packs-mcp/r1.protected/1/empty/", ".packs-mcp/r1.protected/1/l /etc/passwd"},
		},
		{
			name: "a FIFO takes the place of a file", have: []string{".envrc good"}, protect: []string{".envrc"},
			attack: func(p *project) {
				p.must(os.Remove(p.path(".envrc")))
				p.must(unix.Mkfifo(p.path(".envrc"), 0o600))
			},
			changes: []string{".envrc: put back; it had changed"},
		},
		{
			name: "a folder takes the place of a file", have: []string{".envrc good"}, protect: []string{".envrc"},
			attack: func(p *project) {
				p.must(os.Remove(p.path(".envrc")))
				p.make(".envrc/x y")
			},
			changes: []string{".envrc: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			kept:    []string{".packs-mcp/r1.protected/1/x y"},
		},
		{
			name: "a file takes the place of a folder", have: []string{".claude/agents/a.md x", ".claude/b y", ".claude/e/"}, protect: []string{".claude"},
			attack: func(p *project) {
				p.must(os.RemoveAll(p.path(".claude")))
				p.make(".claude evil")
			},
			changes: []string{".claude: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			kept:    []string{".packs-mcp/r1.protected/1 evil"},
		},
		{
			name: "a link takes the place of a file, to what is outside", have: []string{".envrc good"}, protect: []string{".envrc"},
			attack: func(p *project) {
				p.must(os.Remove(p.path(".envrc")))
				p.make(".envrc -> ../outside")
			},
			changes: []string{".envrc: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			kept:    []string{".packs-mcp/r1.protected/1 ../outside"},
		},
		{
			name: "a link takes the place of a folder on the way", have: []string{hook + "* good", "evil/hooks/pre-commit* evil"}, protect: []string{".git/hooks"},
			attack: func(p *project) {
				p.must(os.Rename(p.path(".git"), p.path("old")))
				p.make(".git -> evil")
			},
			changes: []string{
				".git: taken away; it is in .packs-mcp/r1.protected/1",
				".git/hooks: put back; it was gone",
			},
			after: []string{hook + "* good", "evil/hooks/pre-commit* evil", "old/hooks/pre-commit* good"},
			kept:  []string{".packs-mcp/r1.protected/1 evil"},
		},
		{
			name: "the folder on the way is another one", have: []string{hook + "* good"}, protect: []string{".git/hooks", ".git/config"},
			attack: func(p *project) {
				p.must(os.Rename(p.path(".git"), p.path("old")))
				p.make(hook + "* evil")
				p.make(".git/config evil2")
			},
			changes: []string{
				".git/config: taken away; it is in .packs-mcp/r1.protected/1",
				hook + ": put back; it had changed; the changed version is in .packs-mcp/r1.protected/2",
			},
			after: []string{hook + "* good", "old/hooks/pre-commit* good"},
			kept:  []string{".packs-mcp/r1.protected/1 evil2", ".packs-mcp/r1.protected/2 evil"},
		},
		{
			name: "a file takes the place of a folder on the way", have: []string{hook + "* good"}, protect: []string{".git/hooks"},
			attack: func(p *project) {
				p.must(os.Rename(p.path(".git"), p.path("old")))
				p.make(".git gitdir: evil")
			},
			changes: []string{
				".git: taken away; it is in .packs-mcp/r1.protected/1",
				".git/hooks: put back; it was gone",
			},
			after: []string{hook + "* good", "old/hooks/pre-commit* good"},
			kept:  []string{".packs-mcp/r1.protected/1 gitdir: evil"},
		},
		{
			name: "a new link on the way to what was not there", protect: []string{".github/instructions"},
			attack:  func(p *project) { p.make(".github -> nowhere") },
			changes: []string{".github: taken away; it is in .packs-mcp/r1.protected/1"},
			after:   []string{},
			kept:    []string{".packs-mcp/r1.protected/1 nowhere"},
		},
		{
			name: "a link that was there leads elsewhere", have: []string{"a/x 1", "b/x 2", ".claude -> a"}, protect: []string{".claude/x"},
			attack: func(p *project) {
				p.must(os.Remove(p.path(".claude")))
				p.make(".claude -> b")
			},
			changes: []string{".claude: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			kept:    []string{".packs-mcp/r1.protected/1 b"},
		},
		{
			name: "what a link leads to is changed", have: []string{"AGENTS.md good", "CLAUDE.md -> AGENTS.md", "a/x 1", ".claude -> $DIR/a"},
			protect: []string{"CLAUDE.md", ".claude/x"},
			attack: func(p *project) {
				p.make("AGENTS.md evil")
				p.must(os.Remove(p.path("a/x")))
				p.make("a/y fine")
			},
			changes: []string{
				"AGENTS.md: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1",
				"a/x: put back; it was gone",
			},
			after: []string{".claude -> $DIR/a", "AGENTS.md good", "CLAUDE.md -> AGENTS.md", "a/x 1", "a/y fine"},
			kept:  []string{".packs-mcp/r1.protected/1 evil"},
		},
		{
			name: "what a dangling link leads to appears", have: []string{".envrc -> build/env"}, protect: []string{".envrc"},
			attack:  func(p *project) { p.make("build/env evil"); p.make("build/out x") },
			changes: []string{"build/env: taken away; it is in .packs-mcp/r1.protected/1"},
			after:   []string{".envrc -> build/env", "build/out x"},
			kept:    []string{".packs-mcp/r1.protected/1 evil"},
		},
		{
			name: "links in a circle, and to the folder they are in", have: []string{".claude/x good", ".claude/all -> ..", ".cursor -> .cursor2", ".cursor2 -> .cursor", ".roo -> ."},
			protect: []string{".claude", ".cursor", ".roo"},
			attack:  func(p *project) { p.make("new.txt fine") },
			after:   []string{".claude/all -> ..", ".claude/x good", ".cursor -> .cursor2", ".cursor2 -> .cursor", ".roo -> .", "new.txt fine"},
		},
		{
			name: "a hard link to a protected file", have: []string{hook + "* good"}, protect: []string{".git/hooks"},
			attack:  func(p *project) { p.must(os.Link(p.path(hook), p.path("mine"))) },
			changes: []string{hook + ": put back as a file of its own; it had a new name elsewhere (a hard link)"},
			after:   []string{hook + "* good", "mine* good"},
		},
		{
			name: "a hard link in place of a protected file", have: []string{hook + "* good", "mine* good"}, protect: []string{".git/hooks"},
			attack: func(p *project) {
				p.must(os.Remove(p.path(hook)))
				p.must(os.Link(p.path("mine"), p.path(hook)))
			},
			changes: []string{hook + ": put back as a file of its own; it had a new name elsewhere (a hard link)"},
		},
		{
			name: "everything is closed to us", have: []string{hook + "* good"}, protect: []string{".git/hooks", ".vscode"},
			attack: func(p *project) {
				p.make(hook + "* evil")
				p.make(".git/hooks/new evil")
				p.make(".vscode/deep/x evil")
				for _, c := range []struct {
					name string
					mode fs.FileMode
				}{{hook, 0}, {".git/hooks/new", 0}, {".git/hooks", 0}, {".git", 0o500}, {".vscode/deep/x", 0}, {".vscode/deep", 0}, {".vscode", 0o100}, {"", 0o500}} {
					p.must(os.Chmod(p.path(c.name), c.mode))
				}
			},
			changes: []string{
				".git/hooks: its mode is put back to -rwxr-xr-x",
				".git/hooks/new: taken away; it is in .packs-mcp/r1.protected/1",
				hook + ": put back; it had changed; the changed version is in .packs-mcp/r1.protected/2",
				".vscode: taken away; it is in .packs-mcp/r1.protected/3",
			},
			kept: []string{".packs-mcp/r1.protected/1 evil", ".packs-mcp/r1.protected/2 evil", ".packs-mcp/r1.protected/3/deep/x evil"},
		},
		{
			name: "our own folders are something else", have: []string{hook + "* good"}, protect: []string{".git/hooks", ".vscode"},
			attack: func(p *project) {
				p.make(hook + "* evil")
				p.make(".vscode/x evil")
				p.make(".packs-mcp -> src")
				p.make("src/")
				p.must(os.Symlink("/", filepath.Join(p.ws, ".packs-mcp")))
			},
			changes: []string{
				hook + `: put back; it had changed; the changed version is at "$DIR/.packs-mcp-r1.aside/1" (not in the workspace: .packs-mcp there is not a folder)`,
				`.vscode: taken away; it is at "$DIR/.packs-mcp-r1.aside/3" (not in the workspace: .packs-mcp there is not a folder)`,
			},
			after: []string{hook + "* good", ".packs-mcp -> src", ".packs-mcp-r1.aside/1* evil", ".packs-mcp-r1.aside/3/x evil", "src/"},
			kept:  []string{".packs-mcp -> /"},
		},
		{
			name: "our own folders are there already", have: []string{".envrc good"}, protect: []string{".envrc"},
			attack: func(p *project) {
				p.make(".envrc evil")
				p.make(".packs-mcp/r1.aside/1 trap")
			},
			changes: []string{".envrc: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1"},
			after:   []string{".envrc good", ".packs-mcp/r1.aside/1 trap"},
			kept:    []string{".packs-mcp/r1.protected/1 evil"},
		},
		{
			name: "more than one can name", have: []string{".claude/a x", ".claude/d/b y"}, protect: []string{".claude"},
			attack: func(p *project) {
				for i := range maxNewNames + 1 {
					p.must(os.WriteFile(p.path(".claude/new"+strconv.Itoa(i)), nil, 0o600))
				}
				p.make(".claude/d/b evil")
			},
			changes: []string{
				".claude: more than 256 things that are new in it were taken away; they are in .packs-mcp/r1.protected/1",
				".claude/d/b: put back; it had changed; the changed version is in .packs-mcp/r1.protected/2",
			},
			kept: append(slices.Sorted(func(yield func(string) bool) {
				for i := range maxNewNames + 1 {
					if !yield(".packs-mcp/r1.protected/1/new" + strconv.Itoa(i) + " ") {
						return
					}
				}
			}), ".packs-mcp/r1.protected/2 evil"),
		},
		{
			name: "deeper than one looks", have: []string{".claude/" + strings.Repeat("d/", maxGuardedDepth+1) + "x good"}, protect: []string{".claude"},
			attack: func(p *project) { p.make(".claude/" + strings.Repeat("d/", maxGuardedDepth) + "y evil") },
			changes: []string{".claude/" + strings.TrimSuffix(strings.Repeat("d/", maxGuardedDepth), "/") +
				": something in it changed, and not all of that is put back: it has too much in it, or cannot be read"},
			after: []string{".claude/" + strings.Repeat("d/", maxGuardedDepth+1) + "x good", ".claude/" + strings.Repeat("d/", maxGuardedDepth) + "y evil"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t, tt.have...)
			before := listing(t, p.dir)
			changes := p.during(tt.protect, func() { tt.attack(p) })
			if diff := cmp.Diff(tt.changes, changes); diff != "" {
				t.Errorf("settle() (-want +got):\n%s", diff)
			}
			want := tt.after
			if want == nil {
				want = before
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(listing(t, p.dir)))); diff != "" {
				t.Errorf("the project after settle() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.kept, listing(t, p.ws)); diff != "" {
				t.Errorf("the workspace after settle() (-want +got):\n%s", diff)
			}
			if len(tt.kept) > 0 {
				for _, dir := range []string{".packs-mcp", ".packs-mcp/r1.protected"} {
					if info, err := os.Lstat(filepath.Join(p.ws, dir)); err == nil && info.IsDir() && info.Mode().Perm() != 0o700 {
						t.Errorf("%s has mode %v, want 0700", dir, info.Mode().Perm())
					}
				}
			}
		})
	}
}

// A folder that leads to something read-only can still be renamed: what then
// is at the protected path is put right afterwards, at every level.
func TestRunProtectsUnderAMovedParent(t *testing.T) {
	sh, err := Lookup("/bin/sh", LookupOptions{})
	if err != nil {
		t.Skipf("sh: %v", err)
	}
	const script = "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/post-merge; ln -s /etc .vscode; exit 0"
	for _, skip := range [][]Level{nil, {LevelFull}, {LevelFull, LevelPartial}} {
		r := New(Options{TempDir: t.TempDir(), Skip: skip})
		t.Cleanup(r.Close)
		level := r.Level()
		t.Run(level.String(), func(t *testing.T) {
			p := newProject(t, ".git/hooks/pre-commit* good", ".git/HEAD x")
			c := Command{Program: sh, Args: []string{"-c", script}, Dir: p.dir, Workspace: p.ws, RunID: "r1", Env: []string{"PATH=/usr/bin:/bin"}}
			pol := allow(Limits{}, c)
			pol.Protected = []string{p.path(".git/hooks"), p.path(".vscode")}
			res, err := r.Run(t.Context(), pol, c)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{".git/hooks/pre-commit": "good", ".git/hooks/post-merge": "", ".vscode": ""} {
				data, err := os.ReadFile(p.path(name))
				if string(data) != want || (err == nil) != (want != "") {
					t.Errorf("after Run(), %s is %q, %v, want %q\nchanges: %q\nstderr: %s", name, data, err, want, res.Protected, res.Stderr.Bytes())
				}
			}
			if len(res.Protected) == 0 {
				t.Error("Run() reports no change")
			}
		})
	}
}
