package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// project returns a folder with some files, without links on the way.
func project(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("the user's\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A run's changes to its copy of a project come back as a change set, with the same
// checks as elsewhere: nothing dangerous is applied, and nothing large stays.
func TestChangesToCopiesComeBack(t *testing.T) {
	r := sharedRunner(t)
	dir := project(t, "kept", "changed", "removed", "CLAUDE.md")
	p := sandbox.Policy{Layers: r.Layers(t.Context(), []string{dir})}
	if len(p.Layers) != 1 || p.Layers[0].Kind != sandbox.LayerCopy && p.Layers[0].Kind != sandbox.LayerClone {
		t.Fatalf("Layers = %+v, want a copy", p.Layers)
	}
	res := run(t, r, p, dir, `echo new >changed; rm removed; echo made >made; echo mine >CLAUDE.md; mkdir -p .git/hooks; echo x >.git/hooks/post-checkout
		ln -s /etc/passwd out; ln -s made in; mkfifo fifo; mknod dev c 1 3; mknod zero c 0 0; chmod 4755 made; echo x >"$(echo -e 'line\nbreak')"; ln kept linked
		dd if=/dev/zero of=sparse bs=1 count=1 seek=100G; exit 0`)
	var states []string
	for _, set := range res.Changes {
		for _, c := range set.Changes {
			states = append(states, fmt.Sprintf("%s %s", c.State, c.Path))
		}
	}
	slices.Sort(states)
	for _, want := range []string{"applied changed", "applied made", "applied removed", "applied in", "held CLAUDE.md", "refused fifo", "refused out"} {
		if !slices.Contains(states, want) {
			t.Errorf("the changes lack %q: %q (%s)\n%s", want, states, res.ChangesProblem, res.Stderr.Bytes())
		}
	}
	for _, state := range states {
		if strings.HasPrefix(state, "applied") && (strings.Contains(state, ".git") || strings.Contains(state, "dev") || strings.Contains(state, "zero") || strings.Contains(state, "\n")) {
			t.Errorf("%q came back", state)
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "made")); err != nil || info.Mode()&(os.ModeSetuid|os.ModeSymlink) != 0 {
		t.Errorf("made is %v (%v)", info, err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "sparse")); err == nil && info.Size() > sandbox.DefaultLimits().FileSize {
		t.Errorf("a file of %d bytes came back", info.Size())
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "CLAUDE.md")); string(text) != "the user's\n" {
		t.Errorf("CLAUDE.md has %q", text)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 8 {
		t.Errorf("the project has %v", entries)
	}
}

// The program is found in the image, or in the pack, before anything runs.
func TestLookup(t *testing.T) {
	s := newSystem(t)
	pack := project(t)
	for name, text := range map[string]string{"good": "#!/usr/bin/env sh\necho $0\n", "bad": "#!/usr/bin/nobody\n"} {
		if err := os.WriteFile(filepath.Join(pack, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	find := func(name string) program.Program {
		t.Helper()
		p, err := s.Lookup(t.Context(), name, pack, "sha256:pack")
		if err != nil {
			t.Fatalf("Lookup(%q) = %v", name, err)
		}
		return p
	}
	if p := find("sh"); p.Path != "/bin/sh" || p.Resolved != "/bin/busybox" || len(p.Digest) != 64 || len(p.Needs)+len(p.Links) > 0 {
		t.Errorf("Lookup = %+v", p)
	}
	if p := find("greet"); p.Path != "/opt/tools/greet" || len(p.Interpreters) != 2 || p.Interpreters[1].Path != "/bin/sh" || !p.Interpreters[1].OnPath {
		t.Errorf("Lookup = %+v, want the image's script with env(1) and sh", p)
	}
	if p := find("./good"); p.Path != filepath.Join(pack, "good") || len(p.Interpreters) != 2 {
		t.Errorf("Lookup = %+v, want the pack's script", p)
	}
	for name, what := range map[string]string{"git": "not found on PATH", "./none": "no such file in the pack", "./../x": "leads out of the pack", "./bad": "no such file", "/etc/hostname": "is not executable", "/proc/self/exe": ""} {
		if _, err := s.Lookup(t.Context(), name, pack, ""); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("Lookup(%q) = %v, want %q", name, err, what)
		}
	}
}

// Whatever happens to the program's file, only the approved bytes start.
func TestOtherBytes(t *testing.T) {
	r, s := sharedRunner(t), newSystem(t)
	pack := project(t)
	script := filepath.Join(pack, "s")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho approved\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := s.Lookup(t.Context(), "./s", pack, "")
	if err != nil {
		t.Fatal(err)
	}
	start := func(p program.Program) (string, error) {
		res, err := r.Run(t.Context(), sandbox.Policy{ReadOnly: []string{pack}}, sandbox.Command{Program: p, Dir: pack, Env: []string{"PATH=/bin"}})
		if err != nil {
			return "", err
		}
		return string(res.Stdout.Bytes()), nil
	}
	if out, err := start(p); out != "approved\n" || err != nil {
		t.Fatalf("Run = %q, %v", out, err)
	}
	other := p
	other.Interpreters = slices.Clone(p.Interpreters)
	other.Interpreters[0].Digest = strings.Repeat("0", 64)
	if out, err := start(other); !errors.As(err, new(*program.ChangedError)) {
		t.Errorf("with another interpreter, Run = %q, %v, want a *ChangedError", out, err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho evil\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := start(p); !errors.As(err, new(*program.ChangedError)) {
		t.Errorf("with another script, Run = %q, %v, want a *ChangedError", out, err)
	}
}

// A run is not given folders that would open the machine to it, or that a container
// cannot have.
func TestRefused(t *testing.T) {
	r := sharedRunner(t)
	sh := shell(t)
	colon, comma := filepath.Join(project(t), "a:b"), filepath.Join(project(t), "a,source="+project(t, "secret"))
	for _, dir := range []string{colon, comma} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(project(t), "link")
	if err := os.Symlink(filepath.Dir(podman.Socket), link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		p    sandbox.Policy
		want string
	}{
		"the engine's folder":        {sandbox.Policy{ReadOnly: []string{filepath.Dir(podman.Socket)}}, "the container engine's socket"},
		"the engine's socket":        {sandbox.Policy{ReadOnly: []string{podman.Socket}}, "the container engine's socket"},
		"a link to it":               {sandbox.Policy{ReadOnly: []string{link}}, "the container engine's socket"},
		"everything":                 {sandbox.Policy{ReadOnly: []string{"/"}}, "folder"},
		"the machine's processes":    {sandbox.Policy{ReadOnly: []string{"/proc"}}, "has its own"},
		"the machine's devices":      {sandbox.Policy{ReadOnly: []string{"/dev"}}, "has its own"},
		"a folder with a colon":      {sandbox.Policy{Writable: []string{colon}}, "misread"},
		"a folder with a comma":      {sandbox.Policy{ReadOnly: []string{comma}}, "misread"},
		"a folder that is not there": {sandbox.Policy{ReadOnly: []string{"/nowhere"}}, "/nowhere"},
		"the Internet":               {sandbox.Policy{Network: sandbox.NetworkFull}, "none but its own"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := r.Run(t.Context(), c.p, sandbox.Command{Program: sh, Args: []string{"-c", "exit 0"}, Dir: "/"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Run = %+v, %v, want %q", res, err, c.want)
			}
		})
	}
}

// sleeper starts a run that sleeps, and returns when its program runs.
func sleeper(t *testing.T, ctx context.Context, r *runner.Runner, dir string) <-chan *sandbox.Result {
	t.Helper()
	sh := shell(t)
	ready := filepath.Join(project(t), "ready")
	if err := unix.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan *sandbox.Result, 1)
	go func() {
		res, err := r.Run(ctx, sandbox.Policy{Writable: []string{filepath.Dir(ready)}, Layers: r.Layers(ctx, []string{dir})},
			sandbox.Command{Program: sh, Args: []string{"-c", "echo half >half; echo >" + ready + "; trap '' TERM; while :; do sleep 1000; done"}, Dir: dir, Env: []string{"PATH=/bin"}})
		if err != nil {
			t.Errorf("Run = %v", err)
		}
		done <- res
	}()
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	return done
}

// left returns the engine's containers.
func left(t *testing.T) []string {
	t.Helper()
	out, err := podman.Podman(t.Context(), "ps", "--all", "--quiet", "--no-trunc").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// If somebody kills a container, its run counts as interrupted, and its changes wait for
// a person.
func TestCut(t *testing.T) {
	r := newRunner(t)
	dir := project(t)
	done := sleeper(t, t.Context(), r, dir)
	killed := 0
	for _, id := range left(t) { // with those of earlier runs that are being removed
		if podman.Podman(t.Context(), "kill", "--signal", "KILL", id).Run() == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("no container could be killed")
	}
	res := <-done
	if res == nil || res.Signal != "SIGKILL" || len(res.Changes) != 1 || res.Changes[0].Changes[0].State != changes.Held {
		t.Fatalf("Result = %+v", res)
	}
	if _, err := os.Lstat(filepath.Join(dir, "half")); err == nil {
		t.Error("the change of a run that was cut is there")
	}
	if r.Close(); len(left(t)) > 0 {
		t.Errorf("containers are left: %q", left(t))
	}
}

// A run ends normally even if the engine is gone, and the next start removes the
// leftovers. The container of a running server stays.
func TestEngineGoesAway(t *testing.T) {
	r := newRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := sleeper(t, ctx, r, project(t))
	for until := time.Now().Add(time.Minute); len(left(t)) > 1; { // those of earlier runs are being removed
		if time.Now().After(until) {
			t.Fatalf("containers = %q, want one", left(t))
		}
	}
	podman.Stop()
	cancel()
	select {
	case res := <-done:
		if res == nil || res.Cause != sandbox.CauseCancelled {
			t.Errorf("Result = %+v, want it cancelled", res)
		}
	case <-time.After(time.Minute):
		t.Fatal("the run goes on without the engine")
	}
	sh := sandbox.Command{Program: program.Program{Name: "sh", Path: "/bin/sh", Resolved: "/bin/busybox", Digest: strings.Repeat("0", 64)}, Dir: "/"}
	if res, err := r.Run(t.Context(), sandbox.Policy{}, sh); !errors.As(err, new(*sandbox.ConfineError)) {
		t.Errorf("without the engine, Run = %+v, %v, want a *ConfineError", res, err)
	}
	r.Close()
	if len(left(t)) != 1 {
		t.Fatalf("containers = %q, want the one that could not be removed", left(t))
	}
	if err := podman.Serve(); err != nil {
		t.Fatal(err)
	}
	living := newRunner(t) // its first probe sweeps
	if living.Close(); len(left(t)) > 0 {
		t.Errorf("containers are left: %q", left(t))
	}
	ctx, cancel = context.WithCancel(t.Context())
	done = sleeper(t, ctx, living, project(t))
	newRunner(t).Close()
	if len(left(t)) != 1 {
		t.Errorf("containers = %q, want the one of a server that lives", left(t))
	}
	cancel()
	<-done
	living.Close()
}

// A running container stays even if its server's folders are not visible here: that server
// may itself be in a container.
func TestSweepLeavesRunning(t *testing.T) {
	needsPodman(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := podman.Podman(t.Context(), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("podman %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	create := func(command ...string) string {
		args := []string{"create", "--network", "none", "--ulimit", "nofile=256:256", "--ulimit", "nproc=1024:1024", "--label", "packs-mcp.run=/nowhere/packs-run-1", podman.Image}
		return run(append(args, command...)...)
	}
	running, ended := create("/bin/sleep", "1000"), create("/bin/true")
	run("start", running)
	run("start", "--attach", ended)
	newSystem(t).Sweep()
	got := left(t)
	if !slices.Contains(got, running) || slices.Contains(got, ended) {
		t.Errorf("containers = %q, want %s, which runs, and not %s, which has ended", got, running, ended)
	}
	run("rm", "--force", "--time", "0", running)
	if got := left(t); len(got) > 0 {
		t.Errorf("containers are left: %q", got)
	}
}

// Exactly the configured image must exist.
func TestOtherImage(t *testing.T) {
	needsPodman(t)
	digest := strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		o    container.Options
		want string
	}{
		"no engine":       {container.Options{Socket: filepath.Join(t.TempDir(), "s"), Image: podman.Image}, "asking the container engine"},
		"another digest":  {container.Options{Socket: podman.Socket, Image: "localhost/box@sha256:" + digest}, "and no digest sha256:" + digest},
		"no such id":      {container.Options{Socket: podman.Socket, Image: "sha256:" + digest}, "has no image"},
		"no such image":   {container.Options{Socket: podman.Socket, Image: "localhost/none@sha256:" + digest}, "has no image"},
		"a tag":           {container.Options{Socket: podman.Socket, Image: "localhost/box:latest"}, "is neither"},
		"no such runtime": {container.Options{Socket: podman.Socket, Image: podman.Image, Runtime: "nothing"}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runner.New(runner.Options{System: container.New(c.o)})
			report := r.Probe(t.Context())
			if report.Level != sandbox.LevelNone || !strings.Contains(report.Problem(), c.want) || !strings.Contains(report.Hint, c.want) {
				t.Errorf("Probe = %+v, want %q", report, c.want)
			}
			sh := sandbox.Command{Program: program.Program{Name: "sh", Path: "/bin/sh", Resolved: "/bin/sh", Digest: digest}, Dir: "/"}
			if res, err := r.Run(t.Context(), sandbox.Policy{}, sh); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Run = %+v, %v, want %q", res, err, c.want)
			}
		})
	}
	// Its name with the digest denotes the same image.
	if place, err := container.New(container.Options{Socket: podman.Socket, Image: "localhost/box@" + podman.Image}).Place(t.Context()); err != nil || place.Image != podman.Image {
		t.Errorf("Place = %+v, %v", place, err)
	}
}
