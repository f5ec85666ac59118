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

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/test/engine"
	"github.com/packs-mcp/packs-mcp/test/internet"
)

var podman *engine.Engine // nil: this machine has none

var lacks string // why

// engineVar names the socket and the image of a running engine. reachVar makes this
// binary the program that tries to reach others.
const (
	engineVar = "PACKS_TEST_ENGINE"
	reachVar  = "PACKS_TEST_REACH"
)

func TestMain(m *testing.M) {
	if os.Getenv(reachVar) != "" {
		os.Exit(internet.Reach(os.Args[1:]))
	}
	if socket, image, ok := strings.Cut(os.Getenv(engineVar), " "); ok {
		podman = &engine.Engine{Socket: socket, Image: image}
		os.Exit(m.Run())
	}
	if code, done := engine.Statically(); done {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "packs-engine-")
	if err == nil {
		podman, err = engine.Start(context.Background(), dir, "runc")
	}
	if e, ok := errors.AsType[*engine.ErrLacks](err); ok {
		lacks, err = e.Why, nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared.dir = filepath.Join(dir, "shared")
	code := m.Run()
	if shared.runner != nil {
		shared.runner.Close()
	}
	if podman != nil {
		podman.Close()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func needsPodman(t *testing.T) {
	t.Helper()
	if podman != nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "podman") {
		t.Fatalf("%s, though podman is required", lacks)
	}
	t.Skipf("podman: %s", lacks)
}

// shared is the runner for tests that do not need their own, since a trial takes two
// containers.
var shared struct {
	runner *runner.Runner
	dir    string
	shell  program.Program
}

func sharedRunner(t *testing.T) *runner.Runner {
	t.Helper()
	needsPodman(t)
	if shared.runner == nil {
		kept, err := changes.Open(context.Background(), changes.Options{Dir: filepath.Join(shared.dir, "changes")})
		if err != nil {
			t.Fatal(err)
		}
		shared.runner = runner.New(runner.Options{System: newSystem(t), Changes: kept})
		if report := shared.runner.Probe(t.Context()); report.Level != sandbox.LevelFull || !report.Loopback {
			t.Fatalf("Probe = %+v, want level full with loopback", report)
		}
	}
	return shared.runner
}

// shell is the image's shell.
func shell(t *testing.T) program.Program {
	t.Helper()
	if shared.shell.Path == "" {
		var err error
		if shared.shell, err = newSystem(t).Lookup(t.Context(), "sh", "", ""); err != nil {
			t.Fatal(err)
		}
	}
	return shared.shell
}

// newSystem returns the containers of the tests' image.
func newSystem(t *testing.T) *container.System {
	t.Helper()
	needsPodman(t)
	return container.New(container.Options{Socket: podman.Socket, Image: podman.Image})
}

// newRunner returns a Runner with containers, whose level was tried.
func newRunner(t *testing.T) *runner.Runner {
	t.Helper()
	s := newSystem(t)
	kept, err := changes.Open(t.Context(), changes.Options{Dir: filepath.Join(t.TempDir(), "changes")})
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(runner.Options{System: s, Changes: kept, TempDir: t.TempDir(), CopyDir: t.TempDir()})
	t.Cleanup(r.Close)
	if report := r.Probe(t.Context()); report.Level != sandbox.LevelFull || !report.Loopback {
		t.Fatalf("Probe = %+v, want level full with loopback", report)
	}
	return r
}

// run runs a shell's script.
func run(t *testing.T, r *runner.Runner, p sandbox.Policy, dir, script string) *sandbox.Result {
	t.Helper()
	sh := shell(t)
	res, err := r.Run(t.Context(), p, sandbox.Command{Program: sh, Args: []string{"-c", script}, Dir: dir, Env: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRun(t *testing.T) {
	r := sharedRunner(t)
	ws := t.TempDir()
	res := run(t, r, sandbox.Policy{Writable: []string{ws}}, ws, "echo out; echo err >&2; echo new >file; id -u; exit 3")
	if got, want := string(res.Stdout.Bytes()), fmt.Sprintf("out\n%d\n", os.Getuid()); got != want || string(res.Stderr.Bytes()) != "err\n" || res.ExitCode != 3 {
		t.Errorf("stdout %q stderr %q code %d, want %q, \"err\\n\", 3", got, res.Stderr.Bytes(), res.ExitCode, want)
	}
	if text, err := os.ReadFile(filepath.Join(ws, "file")); string(text) != "new\n" {
		t.Errorf("the file has %q (%v)", text, err)
	}
}

// A program in a container reaches only the hosts that its tool names, through the
// same proxy as elsewhere.
func TestHosts(t *testing.T) {
	needsPodman(t)
	t.Setenv(engineVar, podman.Socket+" "+podman.Image)
	if !internet.Own(t) {
		return
	}
	r := newRunner(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Lookup(exe, program.LookupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t)
	internet.Check(t, dir, func(policy sandbox.Policy, args, env []string) (*sandbox.Result, error) {
		policy.ReadOnly = []string{dir, p.Path}
		return r.Run(t.Context(), policy, sandbox.Command{Program: p, Args: args, Dir: dir, Env: append(env, reachVar+"=1")})
	})
}
