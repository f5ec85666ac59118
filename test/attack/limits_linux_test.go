package attack_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// run runs the probe in w, and fails the test if it cannot be started.
func (v variant) run(t *testing.T, w *world, limits sandbox.Limits, args ...string) *sandbox.Result {
	t.Helper()
	cmd, err := w.command(args)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Workspace, cmd.RunID = w.dir("ws"), "r1"
	policy := w.policy(sandbox.NetworkNone)
	policy.Limits = limits
	res, err := v.runner.Run(t.Context(), policy, cmd)
	if err != nil {
		t.Fatalf("probe %q = %v", args, err)
	}
	return res
}

// each runs a test in every variant that confines, each in its own world.
func each(t *testing.T, test func(t *testing.T, v variant, w *world)) {
	t.Helper()
	for _, v := range confined(t) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			test(t, v, newWorld(t))
		})
	}
}

// PK-10, PK-12, PK-13, PK-14: the resources that a program can use up, and what ends it.
func TestLimits(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name   string
		args   []string
		limits sandbox.Limits
		cause  sandbox.Cause
		signal string // possible signals, separated by "|"; empty: it ends by itself
	}{
		{"sleeps", []string{"stray", "plain", "/dev/null"}, sandbox.Limits{Timeout: time.Second}, sandbox.CauseTimeout, "SIGKILL"},
		{"burns the processor", []string{"spin"}, sandbox.Limits{CPU: time.Second}, sandbox.CauseCPULimit, "SIGXCPU"},
		{"writes a large file", []string{"fill", "big", fmt.Sprint(8 * mib)}, sandbox.Limits{FileSize: 4 * mib}, sandbox.CauseFileSizeLimit, "SIGXFSZ"},
		{"fills the workspace", []string{"fill", "big", fmt.Sprint(8 * mib)}, sandbox.Limits{Workspace: 4 * mib}, sandbox.CauseWorkspaceLimit, ""},
		{"prints a lot", []string{"flood", "both", "3000000", "yes\n", "counts"}, sandbox.Limits{}, sandbox.CauseExit, ""},
		{"floods standard output", []string{"flood", "out", "-1", "y\n", "counts"}, sandbox.Limits{OutputTotal: 2 * mib}, sandbox.CauseOutputLimit, "SIGTERM|SIGKILL"},
		{"floods standard error", []string{"flood", "err", "1073741824", "e", "counts"}, sandbox.Limits{OutputTotal: 2 * mib}, sandbox.CauseOutputLimit, "SIGTERM|SIGKILL"},
		{"floods both", []string{"flood", "both", "-1", "\xff\x1b[2J", "counts"}, sandbox.Limits{OutputTotal: 2 * mib}, sandbox.CauseOutputLimit, "SIGTERM|SIGKILL"},
		{"drips for ever", []string{"drip"}, sandbox.Limits{Timeout: 200 * time.Millisecond}, sandbox.CauseTimeout, "SIGTERM"},
	}
	for _, v := range confined(t) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				w, mine := newWorld(t), v
				if tt.signal == "SIGTERM" {
					// The limit ends it, however long that takes on a busy machine.
					mine.runner = newPatient(v.level, t.TempDir(), patience)
				}
				res := mine.run(t, w, tt.limits, tt.args...)
				if res.Cause != tt.cause || !slices.Contains(strings.Split(tt.signal, "|"), res.Signal) {
					t.Errorf("Cause, Signal, ExitCode = %q, %q, %d, want %q, %q (stderr %.200q)",
						res.Cause, res.Signal, res.ExitCode, tt.cause, tt.signal, res.Stderr.Bytes())
				}
				for name, c := range map[string]sandbox.Capture{"stdout": res.Stdout, "stderr": res.Stderr} {
					if kept := int64(len(c.Head) + len(c.Tail)); kept > 16<<10 || c.Dropped != c.Total-kept {
						t.Errorf("%s: %d bytes are kept and %d dropped, of %d", name, kept, c.Dropped, c.Total)
					}
				}
				if tt.args[0] == "flood" {
					checkTotals(t, w, res, tt.limits.OutputTotal)
				}
			})
		}
	}
}

// checkTotals compares a result's output totals with what the program recorded of its
// writes, of which only budget bytes may count.
func checkTotals(t *testing.T, w *world, res *sandbox.Result, budget int64) {
	t.Helper()
	text, err := os.ReadFile(w.dir("ws/counts"))
	if err != nil {
		t.Fatal(err)
	}
	var wrote [2]int64
	if _, err := fmt.Sscan(string(text), &wrote[0], &wrote[1]); err != nil {
		t.Fatalf("the program's counts %q: %v", text, err)
	}
	got := [2]int64{res.Stdout.Total, res.Stderr.Total}
	if res.Cause == sandbox.CauseExit {
		if got != wrote {
			t.Errorf("Total of both streams = %v, want %v", got, wrote)
		}
		return
	}
	if got[0]+got[1] != budget {
		t.Errorf("Total of both streams = %v, want %d together", got, budget)
	}
	// The program may have been killed between a write and recording it. When the budget is
	// used up, some output is in pipes or was read and dropped.
	const write, way = 64 << 10, 256 << 10
	for i := range got {
		if got[i] > wrote[i]+write || got[i] < wrote[i]-way {
			t.Errorf("Total of both streams = %v, and the program wrote %v", got, wrote)
		}
	}
}

// PK-14: memory is refused when it is requested, not only when it is used.
func TestMemoryLimit(t *testing.T) {
	each(t, func(t *testing.T, v variant, w *world) {
		r := replyOf(v.run(t, w, sandbox.Limits{Memory: 256 << 20}, "alloc", "512"), nil)
		if r.Outcome != "ENOMEM" {
			t.Errorf("512 MiB with a limit of 256 MiB = %s %s, want ENOMEM", r.Outcome, r.Detail)
		}
	})
	if r := replyOf(unconfined(t).run(t, newWorld(t), sandbox.Limits{}, "alloc", "512"), nil); r.Outcome != "ok" {
		t.Errorf("unconfined, 512 MiB = %s, want ok", r.Outcome)
	}
}

// 9.8: the memory that a run's processes share has the same limit for all of it together,
// and returned memory can be used again.
func TestSharedMemoryLimit(t *testing.T) {
	const limit = 256
	each(t, func(t *testing.T, v variant, w *world) {
		limits := sandbox.Limits{Memory: limit << 20}
		for _, op := range []string{"share-anon", "share-part", "share-zero", "share-each"} {
			r := replyOf(v.run(t, w, limits, op, "512"), nil)
			if r.Outcome != "ENOMEM" {
				t.Errorf("%s of 512 MiB with a limit of %d = %s %s, want ENOMEM", op, limit, r.Outcome, r.Detail)
			}
			if got, err := strconv.Atoi(r.Detail); r.Detail != "" && (err != nil || got > limit || got < limit/2) {
				t.Errorf("%s with a limit of %d MiB got %q MiB", op, limit, r.Detail)
			}
		}
		if r := replyOf(v.run(t, w, limits, "share-again", "2048"), nil); r.Outcome != "ok" {
			t.Errorf("64 MiB again and again = %s %s, want ok", r.Outcome, r.Detail)
		}
	})
}

// PK-10: a fork bomb stops at the limit, or is killed by it, and nothing of it remains.
func TestForkBomb(t *testing.T) {
	const limit, wanted = 64, "400"
	each(t, func(t *testing.T, v variant, w *world) {
		res := v.run(t, w, sandbox.Limits{Processes: limit, Timeout: 2 * time.Minute}, "forks", wanted, w.base, "stay")
		r := replyOf(res, nil)
		if res.Cause != sandbox.CauseProcessLimit && r.Outcome != "EAGAIN" {
			t.Errorf("Cause, outcome = %q, %s %s, want one that says that there were too many", res.Cause, r.Outcome, r.Detail)
		}
		awaitNone(t, w.base, time.Now())
	})
	w := newWorld(t)
	if r := replyOf(unconfined(t).run(t, w, sandbox.Limits{Processes: limit}, "forks", wanted, w.base), nil); r.Outcome != "ok" {
		t.Skipf("unconfined, %s processes = %s: this machine's own limit is lower", wanted, r.Outcome)
	}
}

// PK-13: a very large number of files does not delay the end of a run.
func TestManyFiles(t *testing.T) {
	each(t, func(t *testing.T, v variant, w *world) {
		res := v.run(t, w, sandbox.Limits{}, "litter", "12000")
		if res.ExitCode != 0 || !res.Incomplete {
			t.Errorf("ExitCode, Incomplete = %d, %v (stderr %q), want 0, true", res.ExitCode, res.Incomplete, res.Stderr.Bytes())
		}
	})
}

// The kernel's own limits, as the program sees them.
func TestResourceLimits(t *testing.T) {
	each(t, func(t *testing.T, v variant, w *world) {
		res := v.run(t, w, sandbox.Limits{CPU: 7 * time.Second, Memory: 300 << 20, OpenFiles: 77, FileSize: 1 << 20, Processes: 50}, "rlimits")
		got := map[string]uint64{}
		if err := json.Unmarshal([]byte(replyOf(res, nil).Detail), &got); err != nil {
			t.Fatalf("%v (%q)", err, res.Stderr.Bytes())
		}
		delete(got, "as")
		if v.level == sandbox.LevelFull { // elsewhere the limit would count all of the user's processes
			if got["nproc"] < 50 || got["nproc"] > 52 {
				t.Errorf("nproc = %d, want 50, or a little more for the sandbox itself", got["nproc"])
			}
		}
		delete(got, "nproc")
		want := map[string]uint64{"core": 1, "cpu": 7, "data": 300 << 20, "nofile": 77, "fsize": 1 << 20}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limits differ (-want +got):\n%s", diff)
		}
	})
}

// PK-16: exit statuses that the sandbox's helper uses can also be the program's own, and a
// failed start is not reported as a status.
func TestStatus(t *testing.T) {
	each(t, func(t *testing.T, v variant, w *world) {
		for _, code := range []int{0, 1, 2, 99, 125, 126, 127, 128, 137, 143, 255} {
			if res := v.run(t, w, sandbox.Limits{}, "exit", fmt.Sprint(code)); res.ExitCode != code || res.Signal != "" || res.Cause != sandbox.CauseExit {
				t.Errorf("exit %d: ExitCode, Signal, Cause = %d, %q, %q", code, res.ExitCode, res.Signal, res.Cause)
			}
		}
		for name, text := range map[string]string{"no-interpreter": "#!/no/such/program\n", "no-program": "\x7fELF, or not"} {
			path := filepath.Join(w.dir("pack"), name)
			if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd, err := w.command(nil)
			if err != nil {
				t.Fatal(err)
			}
			if cmd.Program, err = program.Lookup(path, program.LookupOptions{}); err != nil {
				continue // refused even earlier
			}
			res, err := v.runner.Run(t.Context(), w.policy(sandbox.NetworkNone), cmd)
			if _, ok := errors.AsType[*sandbox.StartError](err); !ok {
				t.Errorf("Run(%q) = %+v, %v, want a StartError", name, res, err)
			}
		}
	})
}

// PK-20, PK-15: what a program inherits, and what it does not.
func TestGiven(t *testing.T) {
	// A descriptor that a program would inherit, as this process may have inherited it from
	// its parent.
	fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	each(t, func(t *testing.T, v variant, w *world) {
		for probe, want := range map[string]string{
			"fds":      `ok 0 1 2`,
			"stdin":    `EOF 0`,
			"session":  `ok `,
			"confined": `ok `,
			"ids":      fmt.Sprintf("ok %d %d", os.Getuid(), os.Getgid()),
		} {
			r := replyOf(v.run(t, w, sandbox.Limits{}, probe), nil)
			if got := r.Outcome + " " + r.Detail; got != want {
				t.Errorf("probe %q = %q, want %q", probe, got, want)
			}
		}
	})
}

// EN-01: nothing from the server's environment reaches a program.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "ANTHROPIC_API_KEY", "GODEBUG_X"} {
		t.Setenv(name, "canary-value")
	}
	for _, v := range confined(t) { // not in parallel, since it sets variables
		t.Run(v.name, func(t *testing.T) {
			w := newWorld(t)
			var env []string
			if err := json.Unmarshal([]byte(replyOf(v.run(t, w, sandbox.Limits{}, "environ"), nil).Detail), &env); err != nil {
				t.Fatal(err)
			}
			for _, kv := range env {
				switch name, _, _ := strings.Cut(kv, "="); name {
				case "HOME", "TMPDIR", "GODEBUG":
				default:
					t.Errorf("the environment has %q", kv)
				}
			}
		})
	}
}

// FS-05: entries that are not artifacts are left out at once, with a reason.
func TestOddArtifacts(t *testing.T) {
	each(t, func(t *testing.T, v variant, w *world) {
		res := v.run(t, w, sandbox.Limits{}, "odd")
		got := lines(res.Stdout.Bytes())
		slices.Sort(got)
		// Nobody may create a device; a sparse file has its nominal size.
		if len(got) != 2 || !strings.HasPrefix(got[0], "device: ") || got[1] != "sparse: truncate sparse: file too large" {
			t.Errorf("what could not be made: %q, want the device and the sparse file", got)
		}
		reasons := map[string]string{}
		for _, s := range res.Skipped {
			reasons[s.Path] = s.Reason
		}
		want := map[string]string{
			"fifo": "is a FIFO", "link": "is a symbolic link", "loop": "is a symbolic link",
			"hard": "has more than one name (hard links)", "hard2": "has more than one name (hard links)",
		}
		if diff := cmp.Diff(want, reasons); diff != "" {
			t.Errorf("Skipped differs (-want +got):\n%s", diff)
		}
		var paths []string
		for _, a := range res.Artifacts {
			paths = append(paths, a.Path)
		}
		if diff := cmp.Diff([]string{"bad\xff\xfeutf8", "new\nline\x1b[31m", strings.Repeat("n", 255), "sparse"}, paths); diff != "" {
			t.Errorf("Artifacts differ (-want +got):\n%s", diff)
		}
	})
}

func lines(p []byte) []string { return strings.Split(strings.TrimSpace(string(p)), "\n") }

// FS-07: files that other programs trust or run are unchanged after a run, whatever the
// program did to them, and the result says so.
func TestProtected(t *testing.T) {
	const before = "[core]\n"
	tests := []struct {
		name string
		args []string // below the workspace
		file string   // the file that the operation is about
		was  string   // its text before the run; empty: it did not exist
	}{
		{"write", []string{"write", ".git/config"}, ".git/config", before},
		{"truncate", []string{"truncate", ".git/config"}, ".git/config", before},
		{"unlink", []string{"unlink", ".git/config"}, ".git/config", before},
		{"rename over it", []string{"rename", "file", ".git/config"}, ".git/config", before},
		{"rename its folder", []string{"rename", ".git", "git"}, ".git/config", before},
		{"create a hook", []string{"create", ".git/hooks/pre-commit"}, ".git/hooks/pre-commit", ""},
		{"create what was not there", []string{"create", ".envrc"}, ".envrc", ""},
		{"create a folder that was not there", []string{"mkdir", ".vscode"}, ".vscode", ""},
		{"make it a link", []string{"symlink", "file", ".mcp.json"}, ".mcp.json", ""},
	}
	for _, v := range confined(t) {
		for _, tt := range tests {
			t.Run(v.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				if err := os.MkdirAll(w.dir("ws/.git/hooks"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(w.dir("ws/.git/config"), []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd, err := w.command(tt.args)
				if err != nil {
					t.Fatal(err)
				}
				// Use another folder as the workspace, since a project is not one.
				chat := w.dir("chat")
				if err := os.Mkdir(chat, 0o700); err != nil {
					t.Fatal(err)
				}
				cmd.Workspace, cmd.RunID = chat, "r1"
				policy := w.policy(sandbox.NetworkNone)
				policy.Writable = []string{chat}
				policy.Layers = v.runner.Layers(t.Context(), []string{w.dir("ws")})
				res, err := v.runner.Run(t.Context(), policy, cmd)
				if err != nil {
					t.Fatal(err)
				}
				r := replyOf(res, nil)
				if text, err := os.ReadFile(w.dir("ws/" + tt.file)); string(text) != tt.was || tt.was == "" && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("probe %q = %s: %s is %q, %v afterwards, want %q", tt.args, r.Outcome, tt.file, text, err, tt.was)
				}
				held := 0
				for _, set := range res.Changes {
					held += set.Count(changes.Held)
				}
				if r.Outcome == "ok" && held == 0 || res.ChangesProblem != "" {
					t.Errorf("probe %q = ok, and nothing is held: %+v %s", tt.args, res.Changes, res.ChangesProblem)
				}
			})
		}
	}
}

// alwaysRuns is how many runs TestAlwaysConfined looks at under each level.
var alwaysRuns = flag.Int("runs", 50, "runs of TestAlwaysConfined; 500 take half a minute")

// PK-19: even under load, no program starts without its confinement.
func TestAlwaysConfined(t *testing.T) {
	const atOnce = 4
	runs := *alwaysRuns
	for _, v := range confined(t) {
		t.Run(v.name, func(t *testing.T) {
			w := newWorld(t)
			stop := make(chan struct{})
			defer close(stop)
			for range 2 { // keep two processors busy
				go func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
					}
				}()
			}
			cmd, err := w.command([]string{"confined"})
			if err != nil {
				t.Fatal(err)
			}
			replies := make(chan reply)
			work := make(chan struct{}, runs)
			for range runs {
				work <- struct{}{}
			}
			close(work)
			for range atOnce {
				go func() {
					for range work {
						replies <- replyOf(v.runner.Run(t.Context(), w.policy(sandbox.NetworkNone), cmd))
					}
				}()
			}
			got := map[string]int{}
			for range runs {
				r := <-replies
				got[r.Outcome+" "+r.Detail]++
			}
			if diff := cmp.Diff(map[string]int{"ok ": runs}, got); diff != "" {
				t.Errorf("replies differ (-want +got):\n%s", diff)
			}
		})
	}
}
