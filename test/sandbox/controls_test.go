//go:build unix

package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// A control is an ordinary program that must succeed at every level: its status is 0, and it
// prints and leaves what is expected.
type control struct {
	name     string
	programs []string // must be on the PATH
	run      string   // the name in a pack's tool; empty: programs[0]
	args     []string
	stdin    string
	env      []string
	network  sandbox.Network
	limits   sandbox.Limits
	granted  []string // further folders that it may write to
	terminal bool     // it creates a pseudo-terminal

	pack      map[string]string // files of the pack
	workspace map[string]string // initial files in the workspace
	prepare   func(*testing.T, *place)

	prints  string            // the whole standard output, trimmed; or:
	matches string            // a regular expression for the output
	leaves  map[string]string // files in the workspace afterwards
	check   func(*testing.T, *place, *sandbox.Result)
}

// enoughControls is how many must succeed at a level for its refusals to mean something.
const enoughControls = 20

// HM-03: what packs usually do works at each level.
func TestControls(t *testing.T) {
	controls := slices.Concat(compilerControls(), toolControls(), pythonControls(), nodeControls(), shellControls(), networkControls()) // the slowest come first
	eachVariant(t, func(t *testing.T, v variant) {
		r := v.runner(t, runner.Options{TempDir: t.TempDir(), Grace: time.Second})
		var passed atomic.Int32
		t.Cleanup(func() { // once the last of them has ended
			t.Logf("%d of %d ordinary programs ran at level %s (%s)", passed.Load(), len(controls), v.name, strings.Join(means(r.Probe(context.Background())), ", "))
			if passed.Load() < enoughControls && required("controls") {
				t.Errorf("%d controls ran, want at least %d", passed.Load(), enoughControls)
			}
			r.Close()
		})
		for _, c := range controls {
			t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				c.try(t, v, r)
				passed.Add(1) // not reached if one failed or was skipped
			})
		}
	})
}

func (c *control) try(t *testing.T, v variant, r *runner.Runner) {
	need(t, c.programs...)
	if c.network == sandbox.NetworkLoopback && v.level == sandbox.LevelPartial {
		t.Skip("level partial has no network of a run's own")
	}
	if c.terminal && v.name == "partial" {
		t.Skip("level partial on Landlock has no terminals of a run's own")
	}
	p := newPlace(t)
	write(t, p.pack, c.pack)
	write(t, p.workspace, c.workspace)
	if c.prepare != nil {
		c.prepare(t, p)
	}
	run := c.run
	if run == "" {
		run = c.programs[0]
	}
	command := p.command(t, run, c.args, c.env)
	command.Stdin = []byte(c.stdin)
	policy := p.policy(c.granted...)
	policy.Network, policy.Limits = c.network, c.limits
	if policy.Limits.Timeout == 0 {
		policy.Limits.Timeout = 2 * time.Minute // generous, for busy machines
	}

	res, err := r.Run(t.Context(), policy, command)
	if err != nil {
		t.Fatalf("Run(%q) = %v, want a result", run, err)
	}
	stdout := strings.TrimSpace(string(res.Stdout.Bytes()))
	failed := res.ExitCode != 0 || res.Cause != sandbox.CauseExit
	if failed {
		t.Errorf("Run(%q) ended with status %d %s %s, want 0", run, res.ExitCode, res.Signal, res.Cause)
	}
	if res.Level != v.level {
		t.Errorf("Run(%q) ran at level %v, want %v", run, res.Level, v.level)
	}
	if c.prints != "" && stdout != c.prints {
		t.Errorf("Run(%q) printed other than it should (-want +got):\n%s", run, cmp.Diff(c.prints, stdout))
		failed = true
	}
	if c.matches != "" && !regexp.MustCompile(c.matches).MatchString(stdout) {
		t.Errorf("Run(%q) printed %q, want a match of %q", run, stdout, c.matches)
		failed = true
	}
	for name, want := range c.leaves {
		got, err := os.ReadFile(filepath.Join(p.workspace, filepath.FromSlash(name)))
		if err != nil || string(got) != want {
			t.Errorf("after Run(%q), %q holds %.200q, %v, want %.200q", run, name, got, err, want)
			failed = true
		}
	}
	if c.check != nil {
		c.check(t, p, res)
	}
	if failed {
		t.Logf("standard output: %.4000s\nstandard error: %.4000s", stdout, res.Stderr.Bytes())
	}
	if t.Failed() {
		t.FailNow()
	}
}

// Each control can fail: at no level does it succeed if the program fails.
func TestControlsCanFail(t *testing.T) {
	need(t, "sh")
	p := newPlace(t)
	r := runner.New(runner.Options{Skip: []sandbox.Level{sandbox.LevelFull, sandbox.LevelPartial}})
	res, err := r.Run(t.Context(), p.policy(), p.command(t, "sh", []string{"-c", "exit 9"}, nil))
	if err != nil || res.ExitCode != 9 {
		t.Fatalf("Run(sh -c 'exit 9') = %+v, %v, want status 9", res, err)
	}
}

// What docs/how-to/sandbox-recipes.md calls impossible even with a grant is indeed
// impossible at the confining levels; otherwise the page is wrong.
func TestMissing(t *testing.T) {
	missing := []control{
		python("local socket", `
import socket
try: socket.socket(socket.AF_UNIX)
except PermissionError: print("none")
a, b = socket.socketpair(); a.send(b"a pair works"); print(b.recv(100).decode())
`, "none\na pair works"),
		python("multiprocessing manager", `
import multiprocessing as mp
try: mp.Manager()
except (PermissionError, EOFError): print("none")
`, "none"),
		python("fork server", `
import multiprocessing as mp
try: mp.get_context("forkserver").Process(target=print).start()
except PermissionError: print("none")
`, "none"),
		shell("new rights", `grep NoNewPrivs /proc/self/status | cut -f2`, "1", "grep", "cut"),
	}
	eachVariant(t, func(t *testing.T, v variant) {
		if v.level == sandbox.LevelNone || runtime.GOOS != "linux" {
			t.Skip("this is about Linux, confined")
		}
		r := v.runner(t, runner.Options{})
		defer r.Close()
		if v.name == "partial" {
			missing = append(slices.Clone(missing), python("pseudo terminal", `
import pty
try: pty.openpty()
except OSError: print("none")
`, "none"))
		}
		for _, c := range missing {
			t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) { c.try(t, v, r) })
		}
	})
}

// artifact returns a check that the run left a file of at least size bytes.
func artifact(name string, size int64) func(*testing.T, *place, *sandbox.Result) {
	return func(t *testing.T, _ *place, res *sandbox.Result) {
		for _, a := range res.Artifacts {
			if a.Path == name && a.Size >= size {
				return
			}
		}
		t.Errorf("the run left %v and skipped %v, want %q of at least %d bytes", res.Artifacts, res.Skipped, name, size)
	}
}

// all returns a check that makes several checks.
func all(checks ...func(*testing.T, *place, *sandbox.Result)) func(*testing.T, *place, *sandbox.Result) {
	return func(t *testing.T, p *place, res *sandbox.Result) {
		for _, check := range checks {
			check(t, p, res)
		}
	}
}

func count(n int, line string) string {
	var b strings.Builder
	for range n {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
