package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/capture"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

func TestRunExitCodes(t *testing.T) {
	for _, code := range []int{0, 1, 2, 125, 126, 127, 137, 143, 255} {
		res := run(t, sandbox.Limits{}, behave(t, "exit", fmt.Sprint(code)))
		if res.ExitCode != code || res.Signal != "" || res.Cause != sandbox.CauseExit {
			t.Errorf("exit %d: Run = %d, %q, %q, want %d and no signal", code, res.ExitCode, res.Signal, res.Cause, code)
		}
	}
}

func TestRunResult(t *testing.T) {
	before := time.Now()
	res := run(t, sandbox.Limits{}, behave(t, "print", "out", "one", "err", "two"))
	if got := string(res.Stdout.Bytes()); got != "one" {
		t.Errorf("Stdout = %q, want %q", got, "one")
	}
	if got := string(res.Stderr.Bytes()); got != "two" {
		t.Errorf("Stderr = %q, want %q", got, "two")
	}
	if res.Merged.Total != 6 {
		t.Errorf("Merged.Total = %d, want 6", res.Merged.Total)
	}
	level := New(Options{Skip: skipped()}).Probe(t.Context()).Level
	if res.Started.Before(before) || res.Duration <= 0 || res.Level != level {
		t.Errorf("Started = %v, Duration = %v, Level = %v, want level %v", res.Started, res.Duration, res.Level, level)
	}
	if runtime.GOOS != "windows" && (res.Usage.CPU <= 0 || res.Usage.MaxRSS < 1<<20) {
		t.Errorf("Usage = %+v, want some", res.Usage)
	}
	if len(res.Artifacts)+len(res.Skipped) > 0 || res.Incomplete {
		t.Errorf("Artifacts = %v, Skipped = %v, Incomplete = %v, want none", res.Artifacts, res.Skipped, res.Incomplete)
	}
}

func TestRunJoin(t *testing.T) {
	c := behave(t, "print", "out", "a", "err", "b", "out", "c", "err", "d")
	c.Join = true
	res := run(t, sandbox.Limits{}, c)
	// Each stream is in order; between the two pipes, the order is approximate.
	merged := string(res.Merged.Bytes())
	if strings.Index(merged, "a") > strings.Index(merged, "c") || strings.Index(merged, "b") > strings.Index(merged, "d") || len(merged) != 4 {
		t.Errorf("Merged = %q, want a before c and b before d", merged)
	}
	if out, err := string(res.Stdout.Bytes()), string(res.Stderr.Bytes()); out != "ac" || err != "bd" {
		t.Errorf("Stdout, Stderr = %q, %q, want %q, %q", out, err, "ac", "bd")
	}

	c = behave(t, "flood", "err", "10000", "0123456789")
	c.Join = true
	res = run(t, sandbox.Limits{}, c)
	if res.Merged.File != ".packs-mcp/r1.output" || len(res.Merged.Head) != 2048 || len(res.Merged.Tail) != 2048 {
		t.Errorf("Merged = %d + %d bytes, file %q", len(res.Merged.Head), len(res.Merged.Tail), res.Merged.File)
	}
	if res.Stdout.File+res.Stderr.File != "" || len(res.Artifacts) != 1 {
		t.Errorf("files %q and %q, artifacts %v; want the file of both streams alone", res.Stdout.File, res.Stderr.File, res.Artifacts)
	}
}

// Output that is shown is cut; output that is parsed is not, up to 1 MiB.
func TestRunWhole(t *testing.T) {
	for _, tt := range []struct {
		lines int // of ten bytes
		whole bool
	}{{10, true}, {100_000, true}, {sandbox.MaxWhole/10 + 1, false}} {
		c := behave(t, "flood", "out", strconv.Itoa(tt.lines*10), "0123456789")
		res := run(t, sandbox.Limits{}, c)
		got, ok := res.Stdout.All()
		if ok != tt.whole || ok && len(got) != tt.lines*10 {
			t.Errorf("All() = %d bytes, %v, want %d, %v", len(got), ok, tt.lines*10, tt.whole)
		}
	}
}

func TestRunArgsByteExact(t *testing.T) { // AR-02
	args := []string{
		"$(id)", "`id`", ";id", "&&id", "|id", "a\nb", "%COMSPEC%", "!x!", "^&", "", " ", "\t", `"`, `'`, `\`, `a\"b`,
		"*", "~", "--output=/tmp/evil", "-", "\x1b[31m", "\u202e", "ü\u0301", "{{x}}", "${HOME}",
	}
	if runtime.GOOS != "windows" {
		args = append(args, "\xff\xfe")
	}
	res := run(t, sandbox.Limits{}, behave(t, "args", args...))
	var got []string
	if err := json.Unmarshal(res.Stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range args {
		want = strings.ToValidUTF8(want, "\ufffd\ufffd") // as JSON shows the two bytes
		if got[i] != want {
			t.Errorf("argument %d = %q, want %q", i, got[i], want)
		}
	}
	if len(got) != len(args) {
		t.Errorf("got %d arguments, want %d", len(got), len(args))
	}
}

func TestRunManyArgs(t *testing.T) { // AR-04
	if runtime.GOOS == "windows" {
		t.Skip("a command line of Windows has 32,767 characters")
	}
	args := make([]string, 10_000)
	for i := range args {
		args[i] = fmt.Sprint(i)
	}
	res := run(t, sandbox.Limits{Output: 1 << 20}, behave(t, "args", args...))
	var got []string
	if err := json.Unmarshal(res.Stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(args, got); diff != "" {
		t.Errorf("arguments differ (-want +got):\n%s", diff)
	}
}

func TestRunRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		limits sandbox.Limits
		change func(*sandbox.Command)
		want   string
		as     error
	}{
		{"NUL in an argument", sandbox.Limits{}, func(c *sandbox.Command) { c.Args = []string{"ok", "a\x00b"} }, "argument 2 has a NUL byte", nil},
		{"NUL in the environment", sandbox.Limits{}, func(c *sandbox.Command) { c.Env = []string{"A=secret\x00"} }, `environment variable "A" has a NUL byte`, nil},
		{"NUL in the folder", sandbox.Limits{}, func(c *sandbox.Command) { c.Dir += "\x00" }, "has a NUL byte", nil},
		{"entry without =", sandbox.Limits{}, func(c *sandbox.Command) { c.Env = []string{"A"} }, "environment entry 1 is not NAME=value", nil},
		{"entry without a name", sandbox.Limits{}, func(c *sandbox.Command) { c.Env = []string{"=A"} }, "environment entry 1 is not NAME=value", nil},
		{"200 kB argument", sandbox.Limits{}, func(c *sandbox.Command) { c.Args = []string{strings.Repeat("x", 200_000)} }, "argument 1: too large (200000 bytes, the most is 131071)", syscall.E2BIG},
		{"200 kB variable", sandbox.Limits{}, func(c *sandbox.Command) { c.Env = []string{"A=" + strings.Repeat("x", 200_000)} }, `environment variable "A": too large`, syscall.E2BIG},
		{"8 MB of arguments", sandbox.Limits{}, func(c *sandbox.Command) {
			for range 80 {
				c.Args = append(c.Args, strings.Repeat("x", 100_000))
			}
		}, "the arguments and the environment together: too large", syscall.E2BIG},
		{"no folder", sandbox.Limits{}, func(c *sandbox.Command) { c.Dir = "" }, `working folder "" is not an absolute path`, nil},
		{"relative folder", sandbox.Limits{}, func(c *sandbox.Command) { c.Dir = "x" }, `working folder "x" is not an absolute path`, nil},
		{"missing folder", sandbox.Limits{}, func(c *sandbox.Command) { c.Dir = filepath.Join(c.Dir, "gone") }, "gone", os.ErrNotExist},
		{"file for a folder", sandbox.Limits{}, func(c *sandbox.Command) { c.Dir = file }, "is not a folder", nil},
		{"file for a workspace", sandbox.Limits{}, func(c *sandbox.Command) { c.Workspace = file }, "is not a folder", nil},
		{"relative workspace", sandbox.Limits{}, func(c *sandbox.Command) { c.Workspace = "." }, "is not an absolute path", nil},
		{"run id", sandbox.Limits{}, func(c *sandbox.Command) { c.RunID = "../x" }, `run id "../x"`, nil},
		{"long run id", sandbox.Limits{}, func(c *sandbox.Command) { c.RunID = strings.Repeat("a", 65) }, "run id", nil},
		{"no digest", sandbox.Limits{}, func(c *sandbox.Command) { c.Program.Digest = "" }, "was not looked up", nil},
		{"no program", sandbox.Limits{}, func(c *sandbox.Command) { c.Program = program.Program{} }, "was not looked up", nil},
		{"negative limit", sandbox.Limits{Timeout: -1}, func(*sandbox.Command) {}, "limit timeout is negative: -1", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := behave(t, "write", "canary", "x")
			canary := filepath.Join(c.Dir, "canary")
			tt.change(&c)
			res, err := New(Options{Skip: skipped()}).Run(t.Context(), allow(tt.limits, c), c)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("Run = %v, want an error with %q", err, tt.want)
			}
			if tt.as != nil && !errors.Is(err, tt.as) {
				t.Errorf("Run = %v, want it to be %v", err, tt.as)
			}
			if res != nil {
				t.Errorf("Run = %v, want no result", res)
			}
			if _, err := os.Stat(canary); err == nil {
				t.Error("the program was started")
			}
		})
	}
}

func TestRunCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := behave(t, "write", "canary", "x")
	if _, err := New(Options{Skip: skipped()}).Run(ctx, allow(sandbox.Limits{}, c), c); !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "canary")); err == nil {
		t.Error("the program was started")
	}
}

func TestRunStdin(t *testing.T) { // PK-15
	input := strings.Repeat("0123456789abcdef", 1<<12) // more than a pipe holds
	for _, in := range []string{"", `{"a": 1}`, input} {
		c := behave(t, "stdin")
		c.Stdin = []byte(in)
		res := run(t, sandbox.Limits{Output: 1 << 20}, c)
		if got := string(res.Stdout.Bytes()); got != in {
			t.Errorf("the program read %d bytes, want %d", len(got), len(in))
		}
		if got, want := string(res.Stderr.Bytes()), fmt.Sprintf("%d <nil>", len(in)); got != want {
			t.Errorf("reading gave %q, want %q", got, want)
		}
	}

	// A program that reads none of it.
	c := behave(t, "exit", "3")
	c.Stdin = make([]byte, 8<<20)
	if res := run(t, sandbox.Limits{}, c); res.ExitCode != 3 {
		t.Errorf("Run = %d, want 3", res.ExitCode)
	}
}

func TestRunOutputCaps(t *testing.T) { // PK-12
	const total = 1<<20 + 7
	for _, line := range []string{"0123456789\n", "x", "\x01\xff\xfe\x80", "ü€😀"} {
		for _, stream := range []string{"out", "err"} {
			t.Run(fmt.Sprintf("%s %q", stream, line), func(t *testing.T) {
				c := behave(t, "flood", stream, fmt.Sprint(total), line)
				res := run(t, sandbox.Limits{}, c)
				got, other := res.Stdout, res.Stderr
				if stream == "err" {
					got, other = other, got
				}
				if got.Total != total || got.Dropped != total-int64(len(got.Head)+len(got.Tail)) {
					t.Errorf("Total, Dropped = %d, %d with %d + %d kept, want %d in all", got.Total, got.Dropped, len(got.Head), len(got.Tail), total)
				}
				if n := len(got.Head) + len(got.Tail); n > 16<<10 || n < 16<<10-6 {
					t.Errorf("%d bytes are kept, want about %d", n, 16<<10)
				}
				if other.Total != 0 {
					t.Errorf("the other stream has %d bytes", other.Total)
				}
				if res.Cause != sandbox.CauseExit || res.ExitCode != 0 {
					t.Errorf("Cause, ExitCode = %q, %d", res.Cause, res.ExitCode)
				}
				full, err := os.ReadFile(filepath.Join(c.Workspace, filepath.FromSlash(got.File)))
				if err != nil {
					t.Fatalf("reading the kept output %q: %v (%s)", got.File, err, got.NotKept)
				}
				block := strings.Repeat(line, 64<<10/len(line))
				want := strings.Repeat(block, total/len(block)+1)[:total]
				if string(full) != want {
					t.Errorf("the kept file has %d bytes, and not what was printed", len(full))
				}
				if string(full[:len(got.Head)]) != string(got.Head) || !strings.HasSuffix(string(full), string(got.Tail)) {
					t.Error("Head and Tail are not those of the output")
				}
				if diff := cmp.Diff([]sandbox.Artifact{{Path: got.File, Size: total}}, res.Artifacts); diff != "" {
					t.Errorf("Artifacts differ (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRunOutputNotKept(t *testing.T) {
	tests := []struct {
		name   string
		change func(*sandbox.Command)
		want   string
	}{
		{"no workspace", func(c *sandbox.Command) { c.Workspace = "" }, "the run has no workspace"},
		{"no run id", func(c *sandbox.Command) { c.RunID = "" }, "the run has no id"},
		{"a file in the way", func(c *sandbox.Command) {
			if err := os.WriteFile(filepath.Join(c.Workspace, capture.Dir), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ".packs-mcp in the workspace is not a folder"},
		{"the name is taken", func(c *sandbox.Command) {
			if err := os.Mkdir(filepath.Join(c.Workspace, capture.Dir), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(c.Workspace, capture.Dir, "r1.stdout"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "creating the file: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := behave(t, "flood", "out", "50000", "x")
			tt.change(&c)
			res := run(t, sandbox.Limits{}, c)
			if res.Stdout.File != "" || !strings.Contains(res.Stdout.NotKept, tt.want) {
				t.Errorf("File, NotKept = %q, %q, want %q", res.Stdout.File, res.Stdout.NotKept, tt.want)
			}
			if res.Stdout.Total != 50000 || len(res.Artifacts) != 0 {
				t.Errorf("Total = %d, Artifacts = %v", res.Stdout.Total, res.Artifacts)
			}
		})
	}
}

func TestRunOutputAtTheLimit(t *testing.T) {
	for _, tt := range []struct {
		total int
		want  sandbox.Cause
	}{{99_999, sandbox.CauseExit}, {100_000, sandbox.CauseExit}, {100_001, sandbox.CauseOutputLimit}} {
		res := run(t, sandbox.Limits{OutputTotal: 100_000}, behave(t, "flood", "out", fmt.Sprint(tt.total), "x"))
		if res.Cause != tt.want || res.Stdout.Total != int64(min(tt.total, 100_000)) {
			t.Errorf("%d bytes: Cause, Total = %q, %d, want %q", tt.total, res.Cause, res.Stdout.Total, tt.want)
		}
	}
	for _, tt := range []struct {
		total     int
		truncated bool
	}{{1000, false}, {1001, true}} {
		res := run(t, sandbox.Limits{Output: 1000}, behave(t, "flood", "out", fmt.Sprint(tt.total), "x"))
		if got := res.Stdout.Truncated(); got != tt.truncated || (res.Stdout.File != "") != tt.truncated {
			t.Errorf("%d bytes: Truncated, File = %v, %q, want %v", tt.total, got, res.Stdout.File, tt.truncated)
		}
	}
}

func TestRunTimeout(t *testing.T) {
	res := runIn(t, patience, sandbox.Limits{Timeout: 50 * time.Millisecond}, behave(t, "sleep"))
	if res.Cause != sandbox.CauseTimeout || res.Duration < 50*time.Millisecond {
		t.Errorf("Cause, Duration = %q, %v", res.Cause, res.Duration)
	}
	if runtime.GOOS != "windows" && (res.ExitCode != -1 || res.Signal != "SIGTERM") {
		t.Errorf("ExitCode, Signal = %d, %q, want -1, SIGTERM", res.ExitCode, res.Signal)
	}
}

func TestRunDir(t *testing.T) {
	c := behave(t, "cwd")
	want, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(run(t, sandbox.Limits{}, c).Stdout.Bytes()); got != want && got != c.Dir {
		t.Errorf("working folder = %q, want %q", got, want)
	}
}

func TestRunTempDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of Unix")
	}
	c := behave(t, "tempdir")
	c.Env = append(c.Env, "TMPDIR=/nowhere") // a pack cannot choose it
	res := run(t, sandbox.Limits{}, c)
	dir := string(res.Stdout.Bytes())
	if res.ExitCode != 0 || dir == "" || strings.HasPrefix(dir, c.Workspace) {
		t.Fatalf("TMPDIR = %q (status %d), want a folder outside the workspace", dir, res.ExitCode)
	}
	if dir == "/tmp" {
		return // of the run's own namespace
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Lstat(%q) = %v, want it removed", dir, err)
	}
}

func TestRunChanged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts are not programs on Windows")
	}
	script := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
	}{
		{"other bytes", func(t *testing.T, dir string) { script(t, filepath.Join(dir, "prog"), "#!/bin/sh\nexit 5\n") }},
		{"same size, same time", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "prog")
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			script(t, path, "#!/bin/sh\nexit 1\n")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}},
		{"gone", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "prog")); err != nil {
				t.Fatal(err)
			}
		}},
		{"link to another", func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "other"), "#!/bin/sh\nexit 0\n")
			if err := os.Remove(filepath.Join(dir, "prog")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("other", filepath.Join(dir, "prog")); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, ws := t.TempDir(), t.TempDir()
			script(t, filepath.Join(dir, "prog"), "#!/bin/sh\nexit 0\n")
			lookup := new(program.Lookuper)
			p, err := lookup.Lookup(filepath.Join(dir, "prog"), program.LookupOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r := New(Options{Skip: skipped(), Lookuper: lookup})
			c := sandbox.Command{Program: p, Dir: ws}
			if res, err := r.Run(t.Context(), allow(sandbox.Limits{}, c), c); err != nil || res.ExitCode != 0 {
				t.Fatalf("Run before the change = %v, %v", res, err)
			}
			tt.change(t, dir)
			_, err = r.Run(t.Context(), allow(sandbox.Limits{}, c), c)
			if _, ok := errors.AsType[*program.ChangedError](err); !ok {
				t.Errorf("Run = %v, want a ChangedError", err)
			}
		})
	}

	t.Run("interpreter", func(t *testing.T) {
		dir, ws := t.TempDir(), t.TempDir()
		script(t, filepath.Join(dir, "interp"), "#!/bin/sh\nexit 0\n")
		script(t, filepath.Join(dir, "prog"), "#!"+filepath.Join(dir, "interp")+"\n")
		p, err := program.Lookup(filepath.Join(dir, "prog"), program.LookupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		script(t, filepath.Join(dir, "interp"), "#!/bin/sh\nexit 1\n")
		_, err = New(Options{Skip: skipped()}).Run(t.Context(), sandbox.Policy{}, sandbox.Command{Program: p, Dir: ws})
		if ce, ok := errors.AsType[*program.ChangedError](err); !ok || ce.Path != p.Interpreters[0].Path {
			t.Errorf("Run = %v, want a program.ChangedError about %q", err, p.Interpreters[0].Path)
		}
	})
}

func TestRunConcurrent(t *testing.T) {
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	var wg sync.WaitGroup
	for i := range 6 {
		c := behave(t, "print", "out", fmt.Sprint(i))
		wg.Go(func() {
			res, err := r.Run(t.Context(), allow(sandbox.Limits{}, c), c)
			if err != nil {
				t.Errorf("Run = %v", err)
			} else if got := string(res.Stdout.Bytes()); got != fmt.Sprint(i) {
				t.Errorf("Stdout = %q, want %d", got, i)
			}
		})
	}
	wg.Wait()
}
