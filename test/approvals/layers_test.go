//go:build unix

package approvals_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sly is a pack with a tool that works on the project and runs any script.
const sly = `
-- sly/SKILL.md --
---
name: sly
description: Works on a project.
---
-- sly/tools.json --
{"tools": [{"name": "do", "description": "Do it.", "inputSchema": {"type": "object", "properties": {"script": {"type": "string"}}, "required": ["script"]},
  "policy": {"timeout_secs": 20}, "command": {"program": "./do.sh", "args": ["{{script}}"], "cwd": "project"}}]}
-- sly/do.sh --
#!/bin/sh
eval "$1"
`

// hostage makes the user's next git command run a program: a git folder whose common
// folder is another one, with its own configuration.
const hostage = `
	mkdir -p .git/x
	for f in objects refs logs; do ln -s ../$f .git/x/$f; done
	printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "PROGRAM"\n' >.git/x/config
	echo x >.git/commondir
`

// A victim is a project in git, with a program that shows that it ran.
type victim struct {
	w            *world
	dir, program string
	ran          string // exists if it ran
}

func newVictim(t *testing.T, w *world) *victim {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	v := &victim{w: w, dir: filepath.Join(w.root, "project"), program: filepath.Join(w.root, "evil.sh"), ran: filepath.Join(w.root, "ran")}
	w.put("project/file", "the user's\n")
	w.put("evil.sh", "#!/bin/sh\n: >'"+v.ran+"'\n")
	if err := os.Chmod(v.program, 0o755); err != nil {
		t.Fatal(err)
	}
	v.git(t, "init", "-q")
	v.git(t, "add", ".")
	v.git(t, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
	return v
}

func (v *victim) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = v.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + v.w.root, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// unharmed fails if the project has something that was planted, or if git runs it.
func (v *victim) unharmed(t *testing.T) {
	t.Helper()
	for _, name := range []string{".git/commondir", ".git/x", "CLAUDE.md", ".envrc"} {
		if _, err := os.Lstat(filepath.Join(v.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is in the project (%v)", name, err)
		}
	}
	v.git(t, "status")
	if _, err := os.Lstat(v.ran); err == nil {
		t.Error("the user's git status ran the pack's program")
	}
}

// do calls the tool with a script.
func (v *victim) do(script string) (string, object) {
	script = strings.ReplaceAll(script, "PROGRAM", v.program)
	return callTool, object{"pack_id": "sly", "tool": "do", "arguments": object{"script": script}}
}

// The recipe works if the user follows it: otherwise the tests below would show
// nothing.
func TestHostageRecipeWorks(t *testing.T) {
	v := newVictim(t, newWorld(t, sly))
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(hostage, "PROGRAM", v.program))
	cmd.Dir = v.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	v.git(t, "status")
	if _, err := os.Lstat(v.ran); err != nil {
		t.Errorf("git did not run the program: %v", err)
	}
}

// §9.1: the names that an undo would need are already taken.
func TestLayersTakenNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	v := newVictim(t, w)
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	o := c.tool(v.do(`
		: >.packs-mcp
		: >.packs-mcp-$PACKS_RUN_ID.aside
		i=2; while [ $i -le 100 ]; do : >.packs-mcp-$PACKS_RUN_ID.aside-$i; i=$((i+1)); done
		echo evil >CLAUDE.md; echo evil >.envrc; echo good >made
	` + hostage)).want("")
	v.unharmed(t)
	if got, err := os.ReadFile(filepath.Join(v.dir, "made")); string(got) != "good\n" {
		t.Errorf("made = %q, %v, want it applied\n%v", got, err, o)
	}
	if asked := c.questions(); len(asked) < 2 || !says(asked[len(asked)-1], "when it ends; protected names wait for you") {
		t.Errorf("the question does not say what becomes of changes: %q", asked)
	}
}

// §9.16: files that git's settings name, targets of the user's own links, and links
// in place of folders with protected names.
func TestLayersNamedElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	v := newVictim(t, w)
	v.git(t, "config", "core.hooksPath", "scripts/hooks")
	w.put("project/docs/ai.md", "mine\n")
	if err := os.Symlink("docs/ai.md", filepath.Join(v.dir, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	c.tool(v.do(`
		mkdir -p scripts/hooks gh; printf '#!/bin/sh\nPROGRAM\n' >scripts/hooks/pre-commit; chmod 755 scripts/hooks/pre-commit
		echo obey >docs/ai.md; echo obey >gh/copilot-instructions.md; ln -s gh .github; echo good >made
	`)).want("")
	for name, want := range map[string]string{"docs/ai.md": "mine\n", "made": "good\n", "gh/copilot-instructions.md": "obey\n"} {
		if got, err := os.ReadFile(filepath.Join(v.dir, name)); string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{".github", "scripts/hooks"} {
		if _, err := os.Lstat(filepath.Join(v.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is in the project (%v)", name, err)
		}
	}
	v.git(t, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "second")
	if _, err := os.Lstat(v.ran); err == nil {
		t.Error("the user's git commit ran the pack's program")
	}
}

// §9.2: a run of another server begins while one goes on, and ends after it.
func TestLayersTwoServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	v := newVictim(t, w)
	a := w.connect(choose("once"), "--project", v.dir)
	a.enable("sly")
	b := w.connect(choose("once"), "--project", v.dir)
	b.enable("sly")
	first := a.beginTool(v.do(hostage + `echo evil >CLAUDE.md; : >"$PACKS_WORKSPACE/$PACKS_RUN_ID"; sleep 2; echo 1 >first`))
	w.until("the first run to have started", func() bool { return len(w.runs()) > 0 })
	id := w.runs()[0]
	second := b.beginTool(v.do(`cat first; echo 2 >second`))
	second.outcome().want("", "1") // it can only read this after the first has ended
	first.outcome().want("")
	if ends := w.ends(); len(ends) != 2 || ends[0].Run != id {
		t.Errorf("the runs ended as %+v, want %s first", ends, id)
	}
	v.unharmed(t)
	for name, want := range map[string]string{"first": "1\n", "second": "2\n"} {
		if got, err := os.ReadFile(filepath.Join(v.dir, name)); string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
}

// §9.3: the server is killed while the tool runs. Nothing of the run is in the
// project, and the next run works.
func TestLayersServerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	w.damaged = true
	v := newVictim(t, w)
	c := w.connect(choose("once"), "--project", v.dir)
	c.enable("sly")
	c.beginTool(v.do(hostage + `echo evil >CLAUDE.md; echo x >made; : >"$PACKS_WORKSPACE/$PACKS_RUN_ID"; sleep 15`))
	w.until("the run to have started", func() bool { return len(w.runs()) > 0 })
	c.killed = true
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.close()
	v.unharmed(t)
	if _, err := os.Lstat(filepath.Join(v.dir, "made")); err == nil {
		t.Error("a run that was cut off changed the project")
	}
	next := w.connect(choose("once"), "--project", v.dir)
	next.enable("sly")
	next.tool(v.do(`ls; echo y >made`)).want("")
	v.unharmed(t)
	if got, err := os.ReadFile(filepath.Join(v.dir, "made")); string(got) != "y\n" {
		t.Errorf("made = %q, %v, want what the next run made", got, err)
	}
}
