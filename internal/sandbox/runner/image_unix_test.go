//go:build unix

package runner

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A packWorld is a pack with a private copy. Somebody has changed the pack since.
type packWorld struct {
	project, pack, from, ws string
}

func newPackWorld(t *testing.T, files map[string]string) *packWorld {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &packWorld{
		project: filepath.Join(base, "project"), pack: filepath.Join(base, "project", ".packs", "p"),
		from: filepath.Join(base, "state", "copy"), ws: filepath.Join(base, "ws"),
	}
	for _, dir := range []string{w.pack, w.from, w.ws} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		for _, dir := range []string{w.pack, w.from} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// spoil changes every file of the pack itself.
func (w *packWorld) spoil(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(w.pack, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = os.WriteFile(path, []byte("#!/bin/sh\necho evil\n"), 0o700)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// command returns a command in the working folder dir, with the pack's path in its
// environment.
func (w *packWorld) command(t *testing.T, name, dir string, args ...string) sandbox.Command {
	t.Helper()
	p, err := program.Lookup(name, program.LookupOptions{PackDir: w.pack, Exclude: []string{w.pack, w.ws}, Path: os.Getenv("PATH"), Environ: os.Environ()})
	if err != nil {
		t.Skipf("program.Lookup(%q) = %v", name, err)
	}
	env := sandbox.MergeEnv(sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: w.ws}), []string{"PACKS_PACK_DIR=" + w.pack, "PYTHONDONTWRITEBYTECODE=1"})
	return sandbox.Command{Program: p, Args: args, Dir: dir, Env: env, Workspace: w.ws}
}

func (w *packWorld) policy() sandbox.Policy {
	return sandbox.Policy{ReadOnly: []string{w.pack}, Writable: []string{w.ws}, Images: []sandbox.Image{{At: w.pack, From: w.from}}}
}

// A program finds the copy in place of the pack, whatever path it takes.
func TestRunImage(t *testing.T) {
	const script = `#!/bin/sh
. "$(dirname "$0")/lib/lib.sh"
cat "$PACKS_PACK_DIR/data" "$1" "${2#--file=}" && cat | xargs cat
`
	files := map[string]string{
		"run.sh": script, "lib/lib.sh": "echo good lib\n", "data": "good data\n", "here.sh": "#!/bin/sh\n. ./lib/lib.sh\n",
		"main.py":         "import sys, os\nfrom mod.part import word\nprint(word, open(os.path.join(os.path.dirname(__file__), 'data')).read().strip())\n",
		"mod/__init__.py": "", "mod/part.py": "word = 'good part'\n",
	}
	const all = "good lib\ngood data\ngood data\ngood data\ngood data\n"
	python := "/usr/bin/python3"
	if path, err := exec.LookPath("python3"); err == nil {
		python = path
	}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	for _, tt := range []struct {
		name  string
		make  func(w *packWorld) (name, dir string, args []string, stdin string)
		grant string // ReadOnly or Writable: the project, which the pack is in
		want  string
	}{
		{"a program of the pack", func(w *packWorld) (string, string, []string, string) {
			return "./run.sh", w.ws, []string{w.pack + "/data", "--file=" + w.pack + "/data"}, w.pack + "/data\n"
		}, "", all},
		{"in a project that it may read", func(w *packWorld) (string, string, []string, string) {
			return "./run.sh", w.ws, []string{w.pack + "/data", "--file=" + w.pack + "/data"}, w.pack + "/data\n"
		}, "read", all},
		{"in a project that it may change", func(w *packWorld) (string, string, []string, string) {
			return "./run.sh", w.project, []string{w.pack + "/data", "--file=" + w.pack + "/data"}, w.pack + "/data\n"
		}, "write", all},
		{"in the pack's folder", func(w *packWorld) (string, string, []string, string) {
			return "./here.sh", w.pack, nil, ""
		}, "", "good lib\n"},
		{"in a folder of the pack", func(w *packWorld) (string, string, []string, string) {
			return "/bin/cat", w.pack + "/lib", []string{"lib.sh"}, ""
		}, "", "echo good lib\n"},
		{"a shell's script", func(w *packWorld) (string, string, []string, string) {
			return "/bin/sh", w.ws, []string{"-c", `cat "` + w.pack + `/data" ` + w.pack + "/lib/lib.sh"}, ""
		}, "", "good data\necho good lib\n"},
		{"python", func(w *packWorld) (string, string, []string, string) {
			return python, w.ws, []string{w.pack + "/main.py"}, ""
		}, "", "good part good data\n"},
		{"python in the pack's folder", func(w *packWorld) (string, string, []string, string) {
			return python, w.pack, []string{"-m", "mod.part"}, ""
		}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newPackWorld(t, files)
			name, dir, args, stdin := tt.make(w)
			c := w.command(t, name, dir, args...)
			c.Stdin = []byte(stdin)
			p := w.policy()
			switch tt.grant {
			case "read":
				p.ReadOnly = append(p.ReadOnly, w.project)
			case "write":
				p.Writable = append(p.Writable, w.project)
			}
			if info, err := os.Lstat(c.Dir); err == nil {
				c.DirID = info
			}
			w.spoil(t)
			res, err := r.Run(t.Context(), p, c)
			if err != nil || res.ExitCode != 0 || string(res.Stdout.Bytes()) != tt.want {
				if err != nil {
					t.Fatalf("Run = %v", err)
				}
				t.Errorf("Run = %d %q (stderr %q), want %q", res.ExitCode, res.Stdout.Bytes(), res.Stderr.Bytes(), tt.want)
			}
		})
	}
}

// The original pack is out of reach where the level can ensure that, even through a
// link or a folder that contains it.
func TestRunImageHides(t *testing.T) {
	w := newPackWorld(t, map[string]string{"data": "good", "sub/data": "good"})
	if err := os.WriteFile(filepath.Join(w.pack, "key"), []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.spoil(t)
	link, into := filepath.Join(w.ws, "..", "link"), filepath.Join(w.ws, "..", "into")
	if err := errors.Join(os.Symlink(w.pack, link), os.Symlink(filepath.Join(w.pack, "sub"), into)); err != nil {
		t.Fatal(err)
	}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir(), Changes: keptChanges(t)})
	defer r.Close()
	if r.Probe(t.Context()).Level == sandbox.LevelNone {
		t.Skip("level none hides nothing")
	}
	for name, change := range map[string]func(p *sandbox.Policy){
		"as it is":           func(*sandbox.Policy) {},
		"not among readable": func(p *sandbox.Policy) { p.ReadOnly = nil },
		"parts are readable": func(p *sandbox.Policy) { p.ReadOnly = append(p.ReadOnly, w.pack+"/sub", w.pack+"/key") },
		"links are readable": func(p *sandbox.Policy) { p.ReadOnly = append(p.ReadOnly, filepath.Clean(link), filepath.Clean(into)) },
		"parent is readable": func(p *sandbox.Policy) { p.ReadOnly = append(p.ReadOnly, w.project) },
		"parent is writable": func(p *sandbox.Policy) { p.Writable = append(p.Writable, w.project) },
		"parent is layered":  func(p *sandbox.Policy) { p.Layers = r.Layers(t.Context(), []string{w.project}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := w.policy()
			change(&p)
			if strings.Contains(name, "parent") {
				if r.Probe(t.Context()).Level < sandbox.LevelFull {
					t.Skip("a level without mounts cannot hide a part of what may be read")
				}
			}
			// The program builds the path itself, so that it cannot be found in the command.
			c := w.command(t, "/bin/sh", w.ws, "-c", `d=$(echo "$1" | tr X /); cat $d/key $d/sub/data $d/data "$2" 2>&1`, "sh",
				strings.ReplaceAll(w.pack, "/", "X"), filepath.Join(w.ws, "..", "into", "data"))
			res, err := r.Run(t.Context(), p, c)
			if err != nil {
				t.Fatalf("Run = %v", err)
			}
			if out := string(res.Stdout.Bytes()); strings.Contains(out, "evil") || out == "" {
				t.Errorf("the program read %q of what is at the pack's own place", out)
			}
		})
	}
}

// Nobody may write in the copy.
func TestRunImageReadOnly(t *testing.T) {
	w := newPackWorld(t, map[string]string{"data": "good"})
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	if r.Probe(t.Context()).Level == sandbox.LevelNone {
		t.Skip("level none keeps nobody from writing")
	}
	c := w.command(t, "/bin/sh", w.ws, "-c", `echo evil >"$PACKS_PACK_DIR/data"; echo evil >"$PACKS_PACK_DIR/new"; rm -f "$PACKS_PACK_DIR/data"`)
	if _, err := r.Run(t.Context(), w.policy(), c); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{w.pack, w.from} {
		entries, err := os.ReadDir(dir)
		text, _ := os.ReadFile(filepath.Join(dir, "data"))
		if err != nil || len(entries) != 1 || string(text) != "good" {
			t.Errorf("%q has %v with %q, %v", dir, entries, text, err)
		}
	}
}

// A loose tool is one file, and so is its copy.
func TestRunImageFile(t *testing.T) {
	w := newPackWorld(t, map[string]string{"a.tool.json": "good\n", "key": "good\n"})
	p := w.policy()
	file := filepath.Join(w.pack, "a.tool.json")
	p.ReadOnly, p.Images = []string{file}, []sandbox.Image{{At: file, From: filepath.Join(w.from, "a.tool.json")}}
	c := w.command(t, "/bin/sh", w.ws, "-c", `cat "$1"; cat "${1%a.tool.json}key" 2>/dev/null`, "sh", file)
	w.spoil(t)
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	res, err := r.Run(t.Context(), p, c)
	want := "good\n"
	if r.Probe(t.Context()).Level == sandbox.LevelNone {
		want = "good\ngood\n" // of the files beside the copy
	}
	if err != nil || string(res.Stdout.Bytes()) != want {
		t.Errorf("Run = %+v, %v, want it to print %q", res, err, want)
	}
}

// A copy that differs from the approved pack is not started.
func TestRunImageVerified(t *testing.T) {
	w := newPackWorld(t, map[string]string{"run.sh": "#!/bin/sh\necho good\n"})
	c := w.command(t, "./run.sh", w.ws)
	if err := os.WriteFile(filepath.Join(w.from, "run.sh"), []byte("#!/bin/sh\necho evil\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	if _, err := r.Run(t.Context(), w.policy(), c); !errors.As(err, new(*program.ChangedError)) {
		t.Errorf("Run = %v, want a *ChangedError", err)
	}
}

// A script's first line may name an interpreter in the pack. Only a level with its
// own file tree can ensure that it is the copied one.
func TestRunImageInterpreter(t *testing.T) {
	sh, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	w := newPackWorld(t, map[string]string{"sh": string(sh)})
	for _, dir := range []string{w.pack, w.from} {
		if err := os.WriteFile(filepath.Join(dir, "run"), []byte("#!"+w.pack+"/sh\necho good $0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := w.command(t, "./run", w.ws)
	w.spoil(t)
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	res, err := r.Run(t.Context(), w.policy(), c)
	if r.Probe(t.Context()).Level < sandbox.LevelFull {
		if !errors.As(err, new(*sandbox.CommandError)) || !strings.Contains(err.Error(), "first line") {
			t.Errorf("Run = %v, %v, want a *CommandError about the first line", res, err)
		}
		return
	}
	if err != nil || string(res.Stdout.Bytes()) != "good "+w.pack+"/run\n" {
		t.Errorf("Run = %+v, %v", res, err)
	}
}

// A swapper exchanges files after all checks and before the start.
type swapper struct {
	level.Starter
	swap func()
}

func (s swapper) Start(l *level.Launch) (level.Process, error) {
	s.swap()
	return s.Starter.Start(l)
}

// RP-04: a program outside the pack, or a script's interpreter, is not started if it
// is exchanged or written to after it was checked.
func TestRunProgramExchanged(t *testing.T) {
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	if r.Probe(t.Context()).Level == sandbox.LevelNone {
		t.Skip("level none cannot compare at the last moment")
	}
	if runtime.GOOS != "linux" {
		t.Skip("this system's levels do not compare")
	}
	plain := r.probed.starter
	ls, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	rename := func(path string) func() error {
		return func() error {
			old, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", old, 0o700), os.Rename(path+".new", path))
		}
	}
	write := func(path string) func() error {
		return func() error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			head := make([]byte, 1)
			_, err = f.ReadAt(head, 0)
			_, err2 := f.WriteAt(head, 0)
			return errors.Join(err, err2)
		}
	}
	for _, tt := range []struct {
		name    string
		file    string // the one to exchange
		program string
		how     func(path string) func() error
	}{
		{"a binary is exchanged", "interp", "interp", rename},
		{"a binary is written to", "interp", "interp", write},
		{"a binary is removed", "interp", "interp", func(path string) func() error { return func() error { return os.Remove(path) } }},
		{"a script is exchanged", "tool", "tool", rename},
		{"a script is written to", "tool", "tool", write},
		{"an interpreter is exchanged", "interp", "tool", rename},
		{"an interpreter is written to", "interp", "tool", write},
		{"the interpreter of an interpreter is exchanged", "interp", "outer", rename},
		{"an interpreter that is a script is exchanged", "tool", "outer", rename},
		{"what env(1) starts is exchanged", "interp", "byenv", rename},
		{"what env(1) starts is written to", "interp", "byenv", write},
		{"nothing of a chain", "tool", "outer", nil},
		{"nothing of env(1)", "tool", "byenv", nil},
		{"nothing", "tool", "tool", nil},
		{"nothing of a binary", "interp", "interp", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			interp := filepath.Join(dir, "interp")
			if err := errors.Join(os.WriteFile(interp, ls, 0o700),
				os.WriteFile(filepath.Join(dir, "tool"), []byte("#!"+interp+"\nexit 7\n"), 0o700),
				os.WriteFile(filepath.Join(dir, "outer"), []byte("#!"+filepath.Join(dir, "tool")+"\n"), 0o700),
				os.WriteFile(filepath.Join(dir, "byenv"), []byte("#!/usr/bin/env interp\nexit 7\n"), 0o700)); err != nil {
				t.Fatal(err)
			}
			p, err := program.Lookup(filepath.Join(dir, tt.program), program.LookupOptions{Path: dir})
			if err != nil {
				t.Fatal(err)
			}
			c := sandbox.Command{Program: p, Dir: dir, Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
			if tt.program == "interp" {
				c.Args = []string{"-c", "exit 7"}
			}
			r.probed.starter = swapper{plain, func() {
				if tt.how != nil {
					if err := tt.how(filepath.Join(dir, tt.file))(); err != nil {
						t.Error(err)
					}
				}
			}}
			res, err := r.Run(t.Context(), sandbox.Policy{ReadOnly: []string{dir}}, c)
			switch {
			case tt.how == nil:
				if err != nil || res.ExitCode != 7 {
					t.Errorf("Run = %+v, %v, want it to run", res, err)
				}
			case strings.HasSuffix(tt.name, "removed"):
				if !errors.As(err, new(*sandbox.StartError)) {
					t.Errorf("Run = %+v, %v, want a *StartError", res, err)
				}
			default:
				ce, ok := errors.AsType[*program.ChangedError](err)
				if !ok || ce.Path != filepath.Join(dir, tt.file) {
					t.Errorf("Run = %+v, %v, want a *program.ChangedError about %q", res, err, tt.file)
				}
			}
		})
	}
	r.probed.starter = plain
}
