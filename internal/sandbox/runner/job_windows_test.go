package runner

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

// jobRunner returns a Runner whose runs are in a job, whatever a probe would find:
// jobs do not depend on integrity labels.
func jobRunner(t *testing.T) *Runner {
	t.Helper()
	r := New(Options{Grace: 100 * time.Millisecond, Drain: 50 * time.Millisecond, TempDir: t.TempDir()})
	all := host{}.Candidates(slog.New(slog.NewTextHandler(t.Output(), nil)))
	last := all[len(all)-1] // without restrictions of the user interface, which another job may not allow
	if last.Err != nil {
		t.Fatal(last.Err)
	}
	r.probed = &probe{done: make(chan struct{}), report: &sandbox.Report{Level: sandbox.LevelPartial}, starter: last.Confiner}
	close(r.probed.done)
	return r
}

func inJob(t *testing.T, p sandbox.Policy, c sandbox.Command) *sandbox.Result {
	t.Helper()
	p.Writable = append(p.Writable, c.Dir)
	res, err := jobRunner(t).Run(t.Context(), p, c)
	if err != nil {
		t.Fatalf("Run(%q) = %v, want a result", c.Args, err)
	}
	return res
}

func TestJobPassesOn(t *testing.T) {
	args := []string{"a b", `"quoted"`, `back\slash\`, "", "ünï😀", `\\"`, "%PATH%", "^&|<>"}
	res := inJob(t, sandbox.Policy{}, behave(t, "args", args...))
	want := `["a b","\"quoted\"","back\\slash\\","","ünï😀","\\\\\"","%PATH%","^\u0026|\u003c\u003e"]` + "\n"
	if diff := cmp.Diff(want, string(res.Stdout.Bytes())); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}

	c := behave(t, "stdin")
	c.Stdin = []byte("some input")
	if res = inJob(t, sandbox.Policy{}, c); string(res.Stdout.Bytes()) != "some input" {
		t.Errorf("standard output = %q, want what was the input", res.Stdout.Bytes())
	}
	if res = inJob(t, sandbox.Policy{}, behave(t, "stdin")); string(res.Stderr.Bytes()) != "0 <nil>" {
		t.Errorf("without input, the program read %q, want an end of file", res.Stderr.Bytes())
	}
	for _, code := range []string{"0", "3", "259", "1816"} {
		res := inJob(t, sandbox.Policy{}, behave(t, "exit", code))
		if got := strconv.Itoa(res.ExitCode); got != code || res.Cause != sandbox.CauseExit || res.Signal != "" {
			t.Errorf("exit %s: code %d, cause %q, signal %q", code, res.ExitCode, res.Cause, res.Signal)
		}
	}
}

func TestJobKillsEverything(t *testing.T) {
	for _, how := range []string{"leave", "stay"} {
		t.Run(how, func(t *testing.T) {
			begin := time.Now()
			res := inJob(t, sandbox.Policy{Limits: sandbox.Limits{Timeout: 3 * time.Second}}, behave(t, "spawn", "xxx", how))
			if got := strings.TrimSpace(string(res.Stdout.Bytes())); got != "3" {
				t.Errorf("it started %q children, want 3", got)
			}
			if how == "leave" && (res.ExitCode != 7 || res.Cause != sandbox.CauseExit) {
				t.Errorf("code %d, cause %q, want 7 and none", res.ExitCode, res.Cause)
			}
			if how == "stay" && (res.ExitCode != -1 || res.Signal != "SIGKILL" || res.Cause != sandbox.CauseTimeout) {
				t.Errorf("code %d, signal %q, cause %q, want -1, SIGKILL and timeout", res.ExitCode, res.Signal, res.Cause)
			}
			// The sleepers hold standard output open, so Run returned because no process of
			// the job is left.
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("Run took %v", took)
			}
		})
	}
}

func TestJobLimitsProcesses(t *testing.T) {
	res := inJob(t, sandbox.Policy{Limits: sandbox.Limits{Processes: 3, Timeout: 5 * time.Second}}, behave(t, "spawn", "xxxxxx", "leave"))
	if got := strings.TrimSpace(string(res.Stdout.Bytes())); got != "2" && got != "3" { // with or without a conhost.exe
		t.Errorf("a program allowed 3 processes started %q more, want 2 or 3", got)
	}
}

func TestJobLimitsTime(t *testing.T) {
	requirePartial(t)
	res := inJob(t, sandbox.Policy{Limits: sandbox.Limits{CPU: 200 * time.Millisecond}}, behave(t, "burn"))
	if res.Cause != sandbox.CauseCPULimit || res.ExitCode != -1 {
		t.Errorf("code %d, cause %q, want -1 and %q", res.ExitCode, res.Cause, sandbox.CauseCPULimit)
	}
}

func TestJobWrites(t *testing.T) {
	r := requirePartial(t)
	outside, inside := t.TempDir(), t.TempDir()
	for _, c := range []struct {
		path string
		code int
	}{
		{filepath.Join(outside, "f"), 1},
		{filepath.Join(inside, "f"), 0},
		{filepath.Join(inside, "dir", "f"), 0},
		{filepath.Join(inside, "old"), 0},
	} {
		if err := os.WriteFile(filepath.Join(inside, "old"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p := sandbox.Policy{Writable: []string{inside}}
		res, err := r.Run(t.Context(), p, behave(t, "write", c.path, "x"))
		if err != nil {
			t.Fatal(err)
		}
		if res.ExitCode != c.code {
			t.Errorf("writing %q: exit code %d, want %d; it said %q", c.path, res.ExitCode, c.code, res.Stderr.Bytes())
		}
	}
	if err := filepath.WalkDir(inside, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.LABEL_SECURITY_INFORMATION)
		if err != nil {
			return err
		}
		if low, _ := winjob.Low(sd.String()); low {
			t.Errorf("after the runs %q is low", path)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// requirePartial returns a Runner at that level, and skips the test where there
// is none.
func requirePartial(t *testing.T) *Runner {
	t.Helper()
	r := New(Options{TempDir: t.TempDir()})
	report := r.Probe(t.Context())
	if report.Level != sandbox.LevelPartial {
		t.Skipf("this needs level partial; %+v", report.Trials)
	}
	return r
}

func TestInvalidText(t *testing.T) {
	c := behave(t, "args", "a\xff")
	if _, err := jobRunner(t).Run(t.Context(), sandbox.Policy{}, c); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("Run(%q) = %v, want a refusal", c.Args, err)
	}
}
