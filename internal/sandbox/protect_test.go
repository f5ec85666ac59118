package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A project is a writable folder with something to protect in it, beside the
// workspace that gets what had changed.
type project struct {
	t       *testing.T
	dir, ws string
}

// newProject makes files of lines of the form NAME CONTENT, "NAME -> TARGET"
// for links, "NAME/" for folders, and a name that ends in * is executable.
func newProject(t *testing.T, lines ...string) *project {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t, filepath.Join(dir, "project"), filepath.Join(dir, "ws")}
	for _, d := range []string{p.dir, p.ws} {
		p.must(os.Mkdir(d, 0o700))
	}
	t.Cleanup(func() { // what a test took our rights from
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	for _, line := range lines {
		p.make(line)
	}
	return p
}

func (p *project) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *project) make(line string) {
	p.t.Helper()
	name, content, _ := strings.Cut(line, " ")
	mode := fs.FileMode(0o644)
	if n, ok := strings.CutSuffix(name, "*"); ok {
		name, mode = n, 0o755
	}
	path := p.path(name)
	if strings.HasSuffix(name, "/") {
		p.must(os.MkdirAll(path, 0o755))
		return
	}
	p.must(os.MkdirAll(filepath.Dir(path), 0o755))
	if target, ok := strings.CutPrefix(content, "-> "); ok {
		p.must(os.Symlink(strings.ReplaceAll(target, "$DIR", p.dir), path))
		return
	}
	p.must(os.WriteFile(path, []byte(content), mode))
	p.must(os.Chmod(path, mode))
}

// listing is everything below dir, in the form that newProject takes.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		name := filepath.ToSlash(rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			if list, err := os.ReadDir(path); err == nil && len(list) == 0 {
				all = append(all, name+"/")
			}
		case mode&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			all = append(all, name+" -> "+strings.ReplaceAll(to, dir, "$DIR"))
		case mode.IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if mode&0o100 != 0 {
				name += "*"
			}
			all = append(all, name+" "+string(data))
		default:
			all = append(all, name+" "+mode.Type().String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// during guards paths while attack runs, and returns what was done.
func (p *project) during(paths []string, attack func()) []string {
	p.t.Helper()
	var gs guards
	g, err := gs.guard(p.policy(paths))
	p.must(err)
	attack()
	changes := p.settle(g)
	if len(gs.known) != 0 {
		p.t.Errorf("after settle, guards still know %d paths", len(gs.known))
	}
	return changes
}

func (p *project) policy(paths []string) *Policy {
	pol := &Policy{Writable: []string{p.dir, p.ws}}
	for _, path := range paths {
		pol.Protected = append(pol.Protected, p.path(path))
	}
	return pol
}

func (p *project) settle(g *guarded) []string {
	p.t.Helper()
	root, err := os.OpenRoot(p.ws)
	p.must(err)
	defer root.Close()
	var changes []string
	for _, c := range g.settle(&workspace{root: root}, "r1") {
		rel, err := filepath.Rel(p.dir, c.Path)
		p.must(err)
		changes = append(changes, filepath.ToSlash(rel)+": "+strings.ReplaceAll(filepath.ToSlash(c.Done), filepath.ToSlash(p.dir), "$DIR"))
	}
	return changes
}

func unixOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("windows: links and modes are others there")
	}
}

func TestProtectedOnEverySystem(t *testing.T) {
	p := newProject(t, "CLAUDE.md good", ".git/hooks/pre-commit good")
	changes := p.during([]string{"CLAUDE.md", ".git/hooks", ".vscode"}, func() {
		p.make("CLAUDE.md evil")
		p.make(".git/hooks/new evil2")
		p.make(".vscode/x evil3")
		p.must(os.Remove(p.path(".git/hooks/pre-commit")))
	})
	want := []string{
		".git/hooks/new: taken away; it is in .packs-mcp/r1.protected/1",
		".git/hooks/pre-commit: put back; it was gone",
		".vscode: taken away; it is in .packs-mcp/r1.protected/2",
		"CLAUDE.md: put back; it had changed; the changed version is in .packs-mcp/r1.protected/3",
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("settle() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{".git/hooks/pre-commit good", "CLAUDE.md good"}, listing(t, p.dir)); diff != "" {
		t.Errorf("the project after settle() (-want +got):\n%s", diff)
	}
}

// A change whose stamp is that of before is seen in files that changed so
// shortly before the run that the clock could not tell.
func TestProtectedWithinTheClocksStep(t *testing.T) {
	p := newProject(t, "CLAUDE.md good")
	var gs guards
	g, err := gs.guard(p.policy([]string{"CLAUDE.md"}))
	p.must(err)
	p.make("CLAUDE.md evil")
	info, err := os.Stat(p.path("CLAUDE.md"))
	p.must(err)
	g.folders[0].below[0].was.stamp = stampOf(info)
	if changes := p.settle(g); len(changes) != 1 {
		t.Errorf("settle() = %q, want one change", changes)
	}
}

// With the same stamp, a file that is older than that is not read again.
func TestProtectedUnchangedIsNotRead(t *testing.T) {
	unixOnly(t)
	p := newProject(t, "CLAUDE.md good")
	var gs guards
	g, err := gs.guard(p.policy([]string{"CLAUDE.md"}))
	p.must(err)
	b := g.folders[0].below[0]
	b.taken = b.taken.Add(time.Hour)
	b.was.data = []byte("else")
	if changes := p.settle(g); len(changes) != 0 {
		t.Errorf("settle() = %q, want no change", changes)
	}
}

// Two runs at the same time: what the first changed is not what the second
// takes for the user's.
func TestProtectedRunsTogether(t *testing.T) {
	p := newProject(t, "CLAUDE.md good")
	var gs guards
	first, err := gs.guard(p.policy([]string{"CLAUDE.md", ".envrc"}))
	p.must(err)
	p.make("CLAUDE.md evil")
	p.make(".envrc evil")
	second, err := gs.guard(p.policy([]string{"CLAUDE.md", ".envrc"}))
	p.must(err)
	if changes := p.settle(first); len(changes) != 2 {
		t.Errorf("settle() of the first run = %q, want two changes", changes)
	}
	if changes := p.settle(second); len(changes) != 0 {
		t.Errorf("settle() of the second run = %q, want no change", changes)
	}
	if diff := cmp.Diff([]string{"CLAUDE.md good"}, listing(t, p.dir)); diff != "" {
		t.Errorf("the project after both runs (-want +got):\n%s", diff)
	}
	second.release() // once more does no harm
	if len(gs.known) != 0 {
		t.Errorf("after both runs, guards know %v", slices.Collect(maps.Keys(gs.known)))
	}

	// The user's own change between runs is the user's.
	p.make("CLAUDE.md better")
	if changes := p.during([]string{"CLAUDE.md"}, func() {}); len(changes) != 0 {
		t.Errorf("settle() of a third run = %q, want no change", changes)
	}
}

func TestProtectedBounds(t *testing.T) {
	big := strings.Repeat("x", maxGuardedBytes+1)
	for _, tt := range []struct {
		name   string
		attack func(p *project)
		want   []string
	}{
		{"unchanged", func(*project) {}, nil},
		{"changed", func(p *project) { p.make(".claude/big evil"); p.make(".claude/small evil") }, []string{
			".claude/big: changed, and not put back: no copy of it was made, since it is too large or cannot be read",
			".claude/small: put back; it had changed; the changed version is in .packs-mcp/r1.protected/1",
		}},
		{"gone", func(p *project) { p.must(os.Remove(p.path(".claude/big"))) }, []string{
			".claude/big: not put back: no copy of it was made, since it is too large or cannot be read (it was gone)",
		}},
		{"all gone", func(p *project) { p.must(os.RemoveAll(p.path(".claude"))) }, []string{
			".claude: put back, but for 1 of the things in it, of which no copy was made (it was gone)",
		}},
		{"a folder instead", func(p *project) { p.must(os.Remove(p.path(".claude/big"))); p.make(".claude/big/x evil") }, []string{
			".claude/big: not put back: no copy of it was made, since it is too large or cannot be read (it had changed; the changed version is in .packs-mcp/r1.protected/1)",
		}},
		{"new and too large for the workspace", func(p *project) {
			p.make(".claude/new/x evil")
			p.must(os.Truncate(p.path(".claude/new/x"), maxKeptBytes+1))
		}, []string{
			`.claude/new: taken away; it is at "$DIR/.packs-mcp/r1.aside/1" (not in the workspace: there is too much of it)`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t, ".claude/big "+big, ".claude/small good")
			if diff := cmp.Diff(tt.want, p.during([]string{".claude"}, func() { tt.attack(p) })); diff != "" {
				t.Errorf("settle() (-want +got):\n%s", diff)
			}
		})
	}
}

// Many small files in the depth do not keep the one on top from being put back.
func TestProtectedNearFirst(t *testing.T) {
	p := newProject(t, ".git/modules/m/config good")
	for i := range maxGuardedFiles {
		p.make(fmt.Sprintf(".git/modules/m/a/%d/o x", i))
	}
	changes := p.during([]string{".git/modules"}, func() { p.make(".git/modules/m/config evil-er") })
	if len(changes) != 1 || !strings.HasPrefix(changes[0], ".git/modules/m/config: put back;") {
		t.Errorf("settle() = %q, want .git/modules/m/config put back", changes)
	}
}

func TestProtectedReportsAreBounded(t *testing.T) {
	p := newProject(t, ".claude/x y")
	changes := p.during([]string{".claude"}, func() {
		for i := range maxReported + 10 {
			p.make(fmt.Sprintf(".claude/%03d z", i))
		}
	})
	if len(changes) != maxReported || !strings.HasSuffix(changes[maxReported-1], "; and 10 more changes like these") {
		t.Errorf("settle() = %d changes that end in %q, want %d that end in how many more", len(changes), changes[len(changes)-1], maxReported)
	}
}

func TestProtectedNeedsWritable(t *testing.T) {
	p := newProject(t)
	for _, path := range []string{p.dir, filepath.Dir(p.dir), filepath.Join(p.dir, "..", "elsewhere", "x")} {
		var gs guards
		_, err := gs.guard(&Policy{Writable: []string{p.dir}, Protected: []string{p.path("fine"), path}})
		if _, ok := errors.AsType[*CommandError](err); !ok {
			t.Errorf("guard(%q) = %v, want a CommandError", path, err)
		}
		if len(gs.known) != 0 {
			t.Errorf("guard(%q) left %d paths known", path, len(gs.known))
		}
	}
	var gs guards
	if g, err := gs.guard(&Policy{Writable: []string{p.dir}}); g != nil || err != nil {
		t.Errorf("guard of nothing = %v, %v, want nil, nil", g, err)
	}
	if changes := (*guarded)(nil).settle(nil, ""); changes != nil {
		t.Errorf("settle of nothing = %v, want nil", changes)
	}
}

// The project is gone, or another, by the time the run ends.
func TestProtectedProjectMoved(t *testing.T) {
	unixOnly(t)
	p := newProject(t, "CLAUDE.md good")
	moved := p.dir + "-moved"
	changes := p.during([]string{"CLAUDE.md"}, func() {
		p.make("CLAUDE.md evil")
		p.must(os.Rename(p.dir, moved))
		p.must(os.Mkdir(p.dir, 0o700))
		p.make("CLAUDE.md another's")
	})
	if len(changes) != 1 {
		t.Errorf("settle() = %q, want one change", changes)
	}
	if diff := cmp.Diff([]string{"CLAUDE.md another's"}, listing(t, p.dir)); diff != "" {
		t.Errorf("the new project (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"CLAUDE.md good"}, listing(t, moved)); diff != "" {
		t.Errorf("the moved project (-want +got):\n%s", diff)
	}
}

// Without a workspace, what had changed stays beside what was put back.
func TestProtectedWithoutWorkspace(t *testing.T) {
	p := newProject(t, "CLAUDE.md good")
	var gs guards
	g, err := gs.guard(p.policy([]string{"CLAUDE.md"}))
	p.must(err)
	p.make("CLAUDE.md evil")
	changes := g.settle(nil, "")
	want := fmt.Sprintf("put back; it had changed; the changed version is at %q (not in the workspace: the run has none)", p.path(".packs-mcp/run.aside/1"))
	if len(changes) != 1 || changes[0].Done != want {
		t.Errorf("settle() = %v, want %q", changes, want)
	}
	if diff := cmp.Diff([]string{".packs-mcp/run.aside/1 evil", "CLAUDE.md good"}, listing(t, p.dir)); diff != "" {
		t.Errorf("the project after settle() (-want +got):\n%s", diff)
	}
}

// Every level leaves what is protected as it was; the full one does so before
// the fact, as far as it was there.
func TestRunProtects(t *testing.T) {
	for _, skip := range [][]Level{nil, {LevelFull}, {LevelFull, LevelPartial}} {
		r := New(Options{TempDir: t.TempDir(), Skip: skip})
		t.Cleanup(r.Close)
		level := r.Level()
		t.Run(level.String(), func(t *testing.T) {
			p := newProject(t, "CLAUDE.md good", ".git/hooks/pre-commit good")
			c := behave(t, "write", "a.txt", "fine", ".vscode/tasks.json", "evil", "CLAUDE.md", "evil")
			c.Dir, c.Workspace = p.dir, p.dir
			pol := allow(Limits{}, c)
			for _, name := range []string{"CLAUDE.md", ".git/hooks", ".vscode"} {
				pol.Protected = append(pol.Protected, p.path(name))
			}
			res, err := r.Run(t.Context(), pol, c)
			if err != nil {
				t.Fatal(err)
			}
			want := []ProtectedChange{{p.path(".vscode"), "taken away; it is in .packs-mcp/r1.protected/1"}}
			after := []string{".git/hooks/pre-commit good", ".packs-mcp/r1.protected/1/tasks.json evil"}
			if level != LevelFull {
				want = append(want, ProtectedChange{p.path("CLAUDE.md"), "put back; it had changed; the changed version is in .packs-mcp/r1.protected/2"})
				after = append(after, ".packs-mcp/r1.protected/2 evil")
			}
			after = append(after, "CLAUDE.md good", "a.txt fine")
			if diff := cmp.Diff(want, res.Protected); diff != "" {
				t.Errorf("Run(): Protected (-want +got):\n%s\nexit %d, stderr: %s", diff, res.ExitCode, res.Stderr.Bytes())
			}
			if diff := cmp.Diff(after, listing(t, p.dir)); diff != "" {
				t.Errorf("the project after Run() (-want +got):\n%s", diff)
			}
			if got := artifactPaths(res); !slices.Contains(got, "a.txt") || slices.Contains(got, ".vscode/tasks.json") {
				t.Errorf("Run() = artifacts %q, want a.txt and nothing that was taken away", got)
			}
			if len(r.guards.known) != 0 {
				t.Errorf("after Run(), the runner knows %d paths", len(r.guards.known))
			}
		})
	}
}

// BenchmarkProtected is a typical project: git's sample hooks, an editor's
// folder, documents for agents, and much that is not there.
func BenchmarkProtected(b *testing.B) {
	dir := b.TempDir()
	write := func(name string, size int) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, size), 0o644)); err != nil {
			b.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		_ = os.Chtimes(path, old, old)
	}
	for i := range 14 {
		write(fmt.Sprintf(".git/hooks/sample-%d", i), 3000)
	}
	for _, name := range []string{".git/config", ".vscode/settings.json", ".vscode/launch.json", "CLAUDE.md", "AGENTS.md", ".github/copilot-instructions.md", ".claude/settings.json", ".claude/agents/a.md", ".claude/agents/b.md"} {
		write(name, 2000)
	}
	p := Policy{Writable: []string{dir}}
	for name := range strings.FieldsSeq(`.git/hooks .git/config .git/modules .gitmodules .vscode .idea .zed .devcontainer .envrc .direnv .mcp.json .claude
		CLAUDE.md CLAUDE.local.md AGENTS.md AGENTS.override.md GEMINI.md .gemini .codex .cursor .cursorrules .windsurf .windsurfrules .clinerules .roo
		.aider.conf.yml .github/copilot-instructions.md .github/instructions .husky .pre-commit-config.yaml .packs .agents`) {
		p.Protected = append(p.Protected, filepath.Join(dir, filepath.FromSlash(name)))
	}
	for _, bb := range []struct {
		name string
		p    *Policy
	}{{"typical", &p}, {"nothing", &Policy{Writable: []string{dir}}}} {
		b.Run(bb.name, func(b *testing.B) {
			var gs guards
			for b.Loop() {
				g, err := gs.guard(bb.p)
				if err != nil {
					b.Fatal(err)
				}
				if g != nil { // the files are new, and people's are older
					for _, was := range g.folders[0].below {
						was.taken = was.taken.Add(time.Hour)
					}
				}
				if changes := g.settle(nil, ""); len(changes) != 0 {
					b.Fatal(changes)
				}
			}
		})
	}
}
