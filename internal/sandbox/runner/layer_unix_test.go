//go:build unix

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// eachLevel runs a test at every level that this machine has, with a runner that
// keeps what runs change.
func eachLevel(t *testing.T, test func(t *testing.T, r *Runner)) {
	for level := sandbox.LevelNone; level <= sandbox.LevelFull; level++ {
		t.Run(level.String(), func(t *testing.T) {
			o := Options{TempDir: t.TempDir(), Changes: keptChanges(t), Grace: 100 * time.Millisecond}
			for l := level + 1; l <= sandbox.LevelFull; l++ {
				o.Skip = append(o.Skip, l)
			}
			r := New(o)
			t.Cleanup(r.Close)
			if got := r.Probe(t.Context()).Level; got != level {
				t.Skipf("the level here is %v: %+v", got, r.Probe(t.Context()).Trials)
			}
			test(t, r)
		})
	}
}

// contents returns a folder as a map of paths to contents. Paths of folders end in
// "/"; a link's content is "-> " and its target.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			all[rel+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all[rel] = "-> " + to
			return err
		default:
			text, err := os.ReadFile(path)
			all[rel] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// plantTree makes a folder of a map of paths to contents.
func plantTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inProject returns an sh command in the project dir, with a workspace elsewhere.
func inProject(t *testing.T, dir, script string) (sandbox.Policy, sandbox.Command) {
	t.Helper()
	sh, err := program.Lookup("/bin/sh", program.LookupOptions{})
	if err != nil {
		t.Skipf("no shell: %v", err)
	}
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Policy{Writable: []string{ws}}, sandbox.Command{
		Program: sh, Args: []string{"-c", script}, Dir: dir, Workspace: ws, RunID: "r1",
		Env: sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: ws}),
	}
}

// states returns the path and state of every change of a result.
func states(res *sandbox.Result) []string {
	var all []string
	for _, set := range res.Changes {
		for _, c := range set.Changes {
			all = append(all, fmt.Sprintf("%s %s", c.State, c.Path))
		}
	}
	slices.Sort(all)
	return all
}

// When a run has ended, the project has its changes, except those with protected
// names.
func TestLayerIsApplied(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		before := map[string]string{"file": "old\n", "gone": "x", "kept": "same", "sub/deep/file": "deep", "sub/gone": "y"}
		dir := plantTree(t, before)
		p, c := inProject(t, dir, `
			set -e
			echo new >file; rm gone; rm -r sub/gone; mkdir made; echo made >made/file; ln -s file link
			echo evil >CLAUDE.md; mkdir -p .git; echo x >.git/commondir; echo x >sub/.envrc
			cat kept sub/deep/file
			test "$(cat file)" = new
		`)
		p.Layers = r.Layers(t.Context(), []string{dir})
		res, err := r.Run(t.Context(), p, c)
		if err != nil {
			t.Fatal(err)
		}
		if res.ExitCode != 0 || string(res.Stdout.Bytes()) != "samedeep" {
			t.Fatalf("Run = %d %q (stderr %q), want what is in the project", res.ExitCode, res.Stdout.Bytes(), res.Stderr.Bytes())
		}
		want := map[string]string{
			"./": "", "sub/": "", "sub/deep/": "", "made/": "",
			"file": "new\n", "kept": "same", "sub/deep/file": "deep", "made/file": "made\n", "link": "-> file",
		}
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Errorf("the project differs afterwards (-want +got):\n%s", diff)
		}
		if res.ChangesProblem != "" {
			t.Errorf("ChangesProblem = %q", res.ChangesProblem)
		}
		for _, want := range []string{"held .git/commondir", "held CLAUDE.md", "held sub/.envrc", "applied file", "applied gone", "applied made/file", "applied link"} {
			if !slices.Contains(states(res), want) {
				t.Errorf("changes = %q, want %q among them", states(res), want)
			}
		}
	})
}

// During a run, the project has none of its changes; the changes of a run that was
// ended are held.
func TestLayerOfAnEndedRun(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		before := map[string]string{"file": "old\n"}
		dir := plantTree(t, before)
		p, c := inProject(t, dir, `echo new >file; echo x >made; echo ready >"$1/ready"; sleep 60`)
		c.Args = append(c.Args, "sh", c.Workspace)
		p.Layers = r.Layers(t.Context(), []string{dir})
		p.Limits.Timeout = time.Second
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 500 {
				if _, err := os.Stat(filepath.Join(c.Workspace, "ready")); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "file")); string(got) != "old\n" {
				t.Errorf("while the run goes on the file is %q, %v", got, err)
			}
		}()
		res, err := r.Run(t.Context(), p, c)
		<-done
		if err != nil {
			t.Fatal(err)
		}
		if res.Cause != sandbox.CauseTimeout {
			t.Fatalf("the run ended by %q, want the timeout", res.Cause)
		}
		if diff := cmp.Diff(map[string]string{"./": "", "file": "old\n"}, contents(t, dir)); diff != "" {
			t.Errorf("the project differs afterwards (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"held file", "held made"}, states(res)); diff != "" {
			t.Errorf("changes differ (-want +got):\n%s", diff)
		}
	})
}

// Runs in the same folder take turns: no run's changes are lost.
func TestLayersTakeTurns(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		dir := plantTree(t, map[string]string{"n": "0"})
		const runs = 4
		results := make(chan error, runs)
		for range runs {
			p, c := inProject(t, dir, `n=$(cat n); sleep 0.05; echo $((n+1)) >n`)
			p.Layers = r.Layers(t.Context(), []string{dir})
			go func() {
				res, err := r.Run(t.Context(), p, c)
				if err == nil && res.ExitCode != 0 {
					err = fmt.Errorf("exit code %d: %s", res.ExitCode, res.Stderr.Bytes())
				}
				results <- err
			}()
		}
		for range runs {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "n")); strings.TrimSpace(string(got)) != fmt.Sprint(runs) {
			t.Errorf("after %d runs that each add 1, it is %q", runs, got)
		}
	})
}

// A folder that can have no layer is read-only, and git is told.
func TestLayerReadOnly(t *testing.T) {
	for level := sandbox.LevelPartial; level <= sandbox.LevelFull; level++ {
		t.Run(level.String(), func(t *testing.T) {
			o := Options{TempDir: t.TempDir()} // and no store for changes
			for l := level + 1; l <= sandbox.LevelFull; l++ {
				o.Skip = append(o.Skip, l)
			}
			r := New(o)
			defer r.Close()
			if r.Probe(t.Context()).Level != level {
				t.Skip("this level is not available here")
			}
			dir := plantTree(t, map[string]string{"file": "old"})
			p, c := inProject(t, dir, `echo "$GIT_OPTIONAL_LOCKS"; echo new >file || echo refused`)
			p.Layers = r.Layers(t.Context(), []string{dir})
			if p.Layers[0].Kind != sandbox.LayerReadOnly || p.Layers[0].Reason == "" {
				t.Fatalf("Layers = %+v, want it read-only with a reason", p.Layers)
			}
			res, err := r.Run(t.Context(), p, c)
			if err != nil || string(res.Stdout.Bytes()) != "0\nrefused\n" {
				t.Errorf("Run = %q, %v, want the write refused", res.Stdout.Bytes(), err)
			}
		})
	}
}

// A person approved one kind of layer. If the folder can only have another kind,
// nothing is started.
func TestLayerOfAnotherKind(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		dir := plantTree(t, map[string]string{"file": "old"})
		for _, kind := range []sandbox.LayerKind{sandbox.LayerReadOnly, sandbox.LayerOverlay, sandbox.LayerClone, sandbox.LayerCopy} {
			p, c := inProject(t, dir, "true")
			p.Layers = r.Layers(t.Context(), []string{dir})
			if p.Layers[0].Kind == kind {
				continue
			}
			p.Layers[0].Kind = kind
			res, err := r.Run(t.Context(), p, c)
			if ce, ok := errors.AsType[*sandbox.CommandError](err); !ok || !ce.Folder {
				t.Errorf("Run with a layer that is %v = %+v, %v, want an error about the folder", kind, res, err)
			}
		}
		left, err := filepath.Glob(filepath.Join(r.o.TempDir, "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left over: %q, %v", left, err)
		}
	})
}

func TestLayersOutermost(t *testing.T) {
	got := outermost([]string{"/a/b", "/a", "/c/", "/a-b", "/c"})
	if diff := cmp.Diff([]string{"/a", "/a-b", "/c"}, got); diff != "" {
		t.Errorf("outermost differs (-want +got):\n%s", diff)
	}
}

// Files that one run or the user made inaccessible do not keep the next run from
// changing the rest. Run as root, this tests nothing.
func TestLayerWithClosedNames(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		if r.Probe(t.Context()).Level == sandbox.LevelNone {
			t.Skip("the same as partial")
		}
		dir := plantTree(t, map[string]string{"own/secret": "", "file": "mine\n", "key": ""})
		for _, name := range []string{"own", "key"} {
			if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "own"), 0o700) })
		do := func(script string, want ...string) *sandbox.Result {
			t.Helper()
			p, c := inProject(t, dir, script)
			p.Layers = r.Layers(t.Context(), []string{dir})
			res, err := r.Run(t.Context(), p, c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, states(res)); diff != "" || res.ChangesProblem != "" {
				t.Errorf("after %q: %s (-want +got):\n%s", script, res.ChangesProblem, diff)
			}
			return res
		}
		first := do("mkdir d q; echo >d/x; chmod 0 d q file", "applied d", "applied d/x", "applied file", "applied q")
		do("chmod 755 q; echo >q/x; echo >more", "applied more", "applied q", "applied q/x")
		if _, err := r.o.Changes.Undo(t.Context(), first.Changes[0].ID); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "d")); err == nil {
			t.Error("d is there after it was undone")
		}
		if text, err := os.ReadFile(filepath.Join(dir, "file")); string(text) != "mine\n" {
			t.Errorf("file = %q, %v after its mode was undone", text, err)
		}
	})
}
