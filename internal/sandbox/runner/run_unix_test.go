//go:build unix

package runner

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// alive reports whether pid is a running process; a zombie is not.
func alive(pid int) bool {
	if unix.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestRunSignal(t *testing.T) { // PK-16: not the same as exit 137
	res := run(t, sandbox.Limits{}, behave(t, "suicide"))
	if res.ExitCode != -1 || res.Signal != "SIGKILL" || res.Cause != sandbox.CauseExit {
		t.Errorf("Run = %d, %q, %q, want -1, SIGKILL and no cause", res.ExitCode, res.Signal, res.Cause)
	}
}

func TestRunKills(t *testing.T) { // PK-12, PK-14
	tests := []struct {
		mode   string
		args   []string
		limits sandbox.Limits
		cause  sandbox.Cause
		code   int
		signal string
	}{
		{"sleep", nil, sandbox.Limits{Timeout: 50 * time.Millisecond}, sandbox.CauseTimeout, -1, "SIGTERM"},
		{"stopped", nil, sandbox.Limits{OutputTotal: 100_000}, sandbox.CauseOutputLimit, -1, "SIGKILL"},
		{"stubborn", nil, sandbox.Limits{OutputTotal: 100_000}, sandbox.CauseOutputLimit, -1, "SIGKILL"},
		{"polite", nil, sandbox.Limits{OutputTotal: 100_000}, sandbox.CauseOutputLimit, 7, ""},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			grace := patience
			if tt.signal == "SIGKILL" { // for programs that ignore SIGTERM
				grace = 500 * time.Millisecond
			}
			res := runIn(t, grace, tt.limits, behave(t, tt.mode, tt.args...))
			if res.Cause != tt.cause || res.ExitCode != tt.code || res.Signal != tt.signal {
				t.Errorf("Run = %q, %d, %q, want %q, %d, %q", res.Cause, res.ExitCode, res.Signal, tt.cause, tt.code, tt.signal)
			}
		})
	}
}

func TestRunFloodOfStderr(t *testing.T) { // PK-12: a gigabyte is not read
	c := behave(t, "flood", "err", fmt.Sprint(1<<30), "x")
	res := run(t, sandbox.Limits{}, c)
	if res.Cause != sandbox.CauseOutputLimit || res.Stderr.Total != 64<<20 || res.Stdout.Total != 0 {
		t.Errorf("Cause, Total = %q, %d, want %q, %d", res.Cause, res.Stderr.Total, sandbox.CauseOutputLimit, 64<<20)
	}
	info, err := os.Stat(filepath.Join(c.Workspace, res.Stderr.File))
	if err != nil || info.Size() != 64<<20 {
		t.Errorf("the kept file: %v, %v, want %d bytes", info, err, 64<<20)
	}
}

func TestRunCancel(t *testing.T) {
	c := behave(t, "ready", "fifo")
	fifo := filepath.Join(c.Dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		f, err := os.Open(fifo) // waits for the program to open it
		cancel()
		if err == nil {
			_ = f.Close()
		}
	}()
	res, err := New(Options{Skip: skipped(), TempDir: t.TempDir()}).Run(ctx, allow(sandbox.Limits{}, c), c)
	if err != nil {
		t.Fatal(err)
	}
	<-seen
	if res.Cause != sandbox.CauseCancelled || res.Signal != "SIGTERM" {
		t.Errorf("Cause, Signal = %q, %q, want %q, SIGTERM", res.Cause, res.Signal, sandbox.CauseCancelled)
	}
}

func TestRunStrays(t *testing.T) { // PK-01, PK-11
	tests := []struct {
		name   string
		args   []string
		limits sandbox.Limits
		cause  sandbox.Cause
		caught bool
	}{
		{"main ends", []string{"plain"}, sandbox.Limits{}, sandbox.CauseExit, true},
		{"main is killed", []string{"plain", "stay"}, sandbox.Limits{OutputTotal: 100_000}, sandbox.CauseOutputLimit, true},
		// Without confinement, a child that leaves the group is not killed, but nobody must
		// wait for it.
		{"own group", []string{"setpgid"}, sandbox.Limits{}, sandbox.CauseExit, false},
		{"own session", []string{"setsid"}, sandbox.Limits{}, sandbox.CauseExit, false},
		{"own session, main is killed", []string{"setsid", "stay"}, sandbox.Limits{OutputTotal: 100_000}, sandbox.CauseOutputLimit, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := behave(t, "leave", tt.args...)
			c.Stdin = make([]byte, 1<<20) // more than a pipe holds, and nobody reads it
			res := run(t, tt.limits, c)
			if res.Cause != tt.cause {
				t.Errorf("Cause = %q, want %q (stderr %q)", res.Cause, tt.cause, res.Stderr.Head)
			}
			pid, err := strconv.Atoi(lines(res.Stdout.Bytes())[0])
			if err != nil {
				t.Fatalf("the program printed %q, want a pid", res.Stdout.Bytes())
			}
			switch {
			case res.Level == sandbox.LevelFull: // the pid is one of a namespace that is gone
			case (tt.caught || res.Level != sandbox.LevelNone) && alive(pid):
				t.Errorf("the program's child %d is alive", pid)
			case !tt.caught && res.Level == sandbox.LevelNone:
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		})
	}
}

func TestRunLeavesNoGoroutine(t *testing.T) {
	for _, c := range []sandbox.Command{
		behave(t, "exit", "0"), behave(t, "sleep"), behave(t, "stubborn"), behave(t, "leave", "setsid"),
	} {
		c.Stdin = make([]byte, 1<<20)
		res := run(t, sandbox.Limits{Timeout: 200 * time.Millisecond, OutputTotal: 100_000}, c)
		if pid, err := strconv.Atoi(lines(res.Stdout.Head)[0]); err == nil && res.Level == sandbox.LevelNone {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	// A goroutine may take a moment to exit after its last statement.
	var stacks strings.Builder
	for range 1000 {
		stacks.Reset()
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stacks.String(), "created by github.com/packs-mcp/packs-mcp/internal/sandbox") {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("goroutines are left:\n%s", stacks.String())
}

func TestRunNoTerminal(t *testing.T) { // PK-15
	if got := string(run(t, sandbox.Limits{}, behave(t, "tty")).Stdout.Bytes()); got != "true true" {
		t.Errorf("no /dev/tty, own session = %s, want true true", got)
	}
}

func TestRunDescriptors(t *testing.T) { // PK-20
	if runtime.GOOS != "linux" {
		t.Skip("which descriptors are Go's own is known on Linux only")
	}
	// An inheritable descriptor, such as this process may have got from its own parent.
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	c := behave(t, "fds")
	c.Stdin = []byte("x")
	if got := string(run(t, sandbox.Limits{}, c).Stdout.Bytes()); got != "0 1 2" {
		t.Errorf("descriptors in the program = %s, want 0 1 2", got)
	}
}

func TestRunEnvironment(t *testing.T) { // EN-01
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "ANTHROPIC_API_KEY", "LD_LIBRARY_PATH_X", "HTTP_PROXY"} {
		t.Setenv(name, "canary-value")
	}
	t.Setenv("LC_ALL", "C.UTF-8")
	c := behave(t, "environ")
	res := run(t, sandbox.Limits{}, c)
	if strings.Contains(string(res.Stdout.Bytes()), "canary-value") {
		t.Errorf("the environment has a secret: %s", res.Stdout.Bytes())
	}
	var env []string
	if err := json.Unmarshal(res.Stdout.Bytes(), &env); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if _, dup := got[name]; dup {
			t.Errorf("%s occurs twice", name)
		}
		got[name] = value
	}
	for name, want := range map[string]string{"HOME": c.Workspace, "TERM": "dumb", "LC_ALL": "C.UTF-8"} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	for name := range got {
		switch name {
		case "HOME", "TERM", "PATH", "LANG", "TZ", "USER", "TMPDIR", childVar, "GOCOVERDIR", "GORACE":
		default:
			if !strings.HasPrefix(name, "LC_") {
				t.Errorf("the environment has %s", name)
			}
		}
	}

	// A nil environment does not mean the server's.
	c.Env = nil
	c.Program, c.Args = lookupShell(t), []string{"-c", `echo "[$GITHUB_TOKEN][$HOME]"`}
	if got := string(run(t, sandbox.Limits{}, c).Stdout.Bytes()); got != "[][]\n" {
		t.Errorf("with no environment: %q, want %q", got, "[][]\n")
	}
}

func lookupShell(t *testing.T) program.Program {
	t.Helper()
	p, err := program.Lookup("/bin/sh", program.LookupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRunStartErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Programs that Lookup refuses are made by hand: a file may change after Lookup.
	made := func(path string) program.Program {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatal(err)
		}
		return program.Program{Name: filepath.Base(path), Path: path, Resolved: resolved, Digest: fmt.Sprintf("%x", sha256.Sum256(text))}
	}
	tests := []struct {
		path string
		want error
	}{
		{write("noexec", "#!/bin/sh\n", 0o600), fs.ErrPermission},
		{write("nointerp", "#!/no/such/interpreter\n", 0o700), fs.ErrNotExist},
		{write("badformat", "\x7fELF garbage", 0o700), syscall.ENOEXEC},
		{write("text", "echo hello\n", 0o700), syscall.ENOEXEC},
	}
	for _, tt := range tests {
		c := sandbox.Command{Program: made(tt.path), Dir: dir}
		_, err := New(Options{Skip: skipped()}).Run(t.Context(), allow(sandbox.Limits{}, c), c)
		se, ok := errors.AsType[*sandbox.StartError](err)
		if !ok || !errors.Is(err, tt.want) {
			t.Errorf("Run(%q) = %v, want a StartError that is %v", tt.path, err, tt.want)
		} else if se.Program.Path != tt.path {
			t.Errorf("StartError.Program.Path = %q, want %q", se.Program.Path, tt.path)
		}
	}
}

func TestRunTooLargeByTheKernel(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limits are those of Linux")
	}
	// Just below our predicted limit; the kernel counts a little more. Either way the
	// answer is the same.
	c := behave(t, "exit", "0")
	const much = 64 << 20
	env := sandbox.MergeEnv(c.Env, []string{"TMPDIR=" + t.TempDir()})
	var large *sandbox.TooLargeError
	if err := level.CheckSpace([]string{c.Program.Path, strings.Repeat("x", much-9)}, env); !errors.As(err, &large) {
		t.Fatalf("CheckSpace of %d bytes = %v", much, err)
	}
	room := large.Limit - (large.Size - much)
	for room > 100_000 {
		c.Args = append(c.Args, strings.Repeat("x", 100_000-9))
		room -= 100_000
	}
	for pad := max(room-200, 0); pad < room+40; pad += 20 {
		try := c
		try.Args = slices.Concat(c.Args, []string{strings.Repeat("x", pad)})
		res, err := New(Options{Skip: skipped()}).Run(t.Context(), allow(sandbox.Limits{}, try), try)
		if _, ok := errors.AsType[*sandbox.TooLargeError](err); err != nil && !ok {
			t.Fatalf("Run with %d bytes = %v, want a result or a TooLargeError", pad, err)
		}
		if err == nil && res.ExitCode != 0 && res.ExitCode != 99 {
			t.Fatalf("Run with %d bytes = %+v", pad, res)
		}
	}
}

func TestRunOddArtifacts(t *testing.T) { // FS-04, FS-05
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(skipVar, "full partial") // where the program can make all of them
	c := behave(t, "odd", outside)
	res := run(t, sandbox.Limits{Workspace: 100 << 30}, c)
	if res.ExitCode != 0 {
		t.Fatalf("the program could not make its files: %s", res.Stderr.Bytes())
	}
	reasons := map[string]string{
		"fifo":     "is a FIFO",
		"hard":     "has more than one name (hard links)",
		"inlink":   "is a symbolic link",
		"link":     "is a symbolic link",
		"rootlink": "is a symbolic link",
		"setid":    "runs with the rights of its owner or group (set-ID)",
		"socket":   "is a socket",
		"sparse":   "is larger than 268435456 bytes",
		"secret":   "cannot be read: permission denied",
	}
	paths := []string{"bad\xff\xfeutf8", "dir/inner", "new\nline\x1b[31m", strings.Repeat("n", 255), "plain"}
	if os.Geteuid() == 0 {
		delete(reasons, "secret") // root reads everything
		paths = append(paths, "secret")
	}
	if diff := cmp.Diff(reasons, skippedReasons(res)); diff != "" {
		t.Errorf("Skipped differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(paths, artifactPaths(res)); diff != "" {
		t.Errorf("Artifacts differ (-want +got):\n%s", diff)
	}
	if res.MoreArtifacts != 0 || res.Incomplete || res.Cause != sandbox.CauseExit {
		t.Errorf("MoreArtifacts, Incomplete, Cause = %d, %v, %q", res.MoreArtifacts, res.Incomplete, res.Cause)
	}

	// A second run that touches nothing has no artifacts.
	c.Env = sandbox.MergeEnv(c.Env, []string{childVar + "=exit"})
	c.Args = []string{"0"}
	res = run(t, sandbox.Limits{Workspace: 1}, c)
	if len(res.Artifacts)+len(res.Skipped) != 0 || res.Cause != sandbox.CauseExit {
		t.Errorf("second run: Artifacts = %v, Skipped = %v, Cause = %q, want none", res.Artifacts, res.Skipped, res.Cause)
	}
}

func TestRunKeptOutputIsNotFollowed(t *testing.T) {
	for _, target := range []string{t.TempDir(), "inside"} {
		c := behave(t, "hijack", target)
		if target == "inside" {
			if err := os.Mkdir(filepath.Join(c.Workspace, target), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		res := run(t, sandbox.Limits{}, c)
		if res.Stdout.File != "" || res.Stdout.NotKept != ".packs-mcp in the workspace is not a folder" {
			t.Errorf("File, NotKept = %q, %q, want it not kept", res.Stdout.File, res.Stdout.NotKept)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(c.Workspace, target)
		}
		if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
			t.Errorf("ReadDir(%q) = %v, %v, want nothing", target, entries, err)
		}
	}
}
