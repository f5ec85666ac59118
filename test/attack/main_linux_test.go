package attack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// serverVar makes the test binary a server that runs the probe once. Its value is the level;
// the arguments are the folder of a world and the probe's arguments.
const serverVar = "ATTACK_TEST_SERVER"

// probeVar names a probe that was already built.
const probeVar = "ATTACK_TEST_PROBE"

func TestMain(m *testing.M) {
	if level, ok := os.LookupEnv(serverVar); ok {
		os.Exit(serve(level, os.Args[1], os.Args[2:]))
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the probe, built on first use.
var built struct {
	sync.Once
	dir, path string
	err       error
}

// probe returns the path of the probe.
func probe(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		if built.path = os.Getenv(probeVar); built.path != "" {
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "packs-probe-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "probe")
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", built.path, "./probe")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("building the probe: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// lacks skips the test, or fails it if PACKS_MCP_REQUIRE says that this machine has what is
// missing.
func lacks(t *testing.T, what, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), what) {
		t.Fatalf("%s, though %s is required", why, what)
	}
	t.Skipf("%s: it needs %s", why, what)
}

// A variant is one way of confining a run: a column of the table.
type variant struct {
	name   string
	level  sandbox.Level
	needs  string // its name in PACKS_MCP_REQUIRE
	runner *runner.Runner

	// ownKernel says that the container's kernel is not the machine's. Its filter can ask
	// nobody, and a program can kill the first process.
	ownKernel bool
}

// grace is the time between SIGTERM and SIGKILL in the tests' runs.
const grace = 50 * time.Millisecond

// newRunner returns a Runner whose best level is level, if this machine supports it.
func newRunner(level sandbox.Level, tmp string) *runner.Runner {
	return newPatient(level, tmp, grace)
}

// newPatient is newRunner with another grace.
func newPatient(level sandbox.Level, tmp string, grace time.Duration) *runner.Runner {
	var skip []sandbox.Level
	for l := sandbox.LevelFull; l > level; l-- {
		skip = append(skip, l)
	}
	// Without a store for changes, every folder of the user's is read-only.
	kept, _ := changes.Open(context.Background(), changes.Options{Dir: filepath.Join(tmp, "changes")})
	return runner.New(runner.Options{Skip: skip, Grace: grace, TempDir: tmp, Changes: kept})
}

// confined returns the variants that confine on this machine. A missing one is a skipped
// subtest.
func confined(t *testing.T) []variant {
	t.Helper()
	all := []variant{
		{name: "full", level: sandbox.LevelFull, needs: "userns"},
		{name: "partial", level: sandbox.LevelPartial, needs: "landlock"},
	}
	if os.Getenv(blockedVar) == "landlock" {
		all = []variant{withoutLandlock}
	}
	var have []variant
	for _, v := range all {
		v.runner = newRunner(v.level, t.TempDir())
		report := v.runner.Probe(t.Context())
		if report.Level == v.level {
			have = append(have, v)
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			lacks(t, v.needs, fmt.Sprintf("level %s cannot be had here (%+v)", v.level, report.Trials))
		})
	}
	return have
}

// unconfined returns the variant that shows that the operations work.
func unconfined(t *testing.T) variant {
	return variant{name: "none", level: sandbox.LevelNone, runner: newRunner(sandbox.LevelNone, t.TempDir())}
}

// serve does what a server does for a run, as far as the server's own end matters.
func serve(level, dir string, args []string) int {
	var l sandbox.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		<-stop
		cancel(sandbox.ErrShutdown)
	}()
	w := &world{base: dir, names: map[string]string{"probe": os.Getenv(probeVar)}}
	cmd, err := w.command(args)
	if err == nil {
		runner := newRunner(l, dir)
		// On a busy machine, the check of a level may fail. Without confinement, "stray
		// kill-all" would kill every process of the user.
		if got := runner.Probe(context.Background()).Level; got != l {
			fmt.Fprintf(os.Stderr, "level %s cannot be had, only %s: nothing was run\n", l, got)
			return 1
		}
		_, err = runner.Run(ctx, w.policy(sandbox.NetworkNone), cmd)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
