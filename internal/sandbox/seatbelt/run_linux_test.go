package seatbelt

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// self returns the test binary, and a link to it named sandbox-exec.
func self(t *testing.T) (path, sandboxExec string) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sandboxExec = filepath.Join(t.TempDir(), "sandbox-exec")
	if err := os.Symlink(path, sandboxExec); err != nil {
		t.Fatal(err)
	}
	return path, sandboxExec
}

func order(t *testing.T, mode string, args ...string) *Order {
	t.Helper()
	path, sandboxExec := self(t)
	o := &Order{SandboxExec: sandboxExec, Dir: []byte(t.TempDir()), Profile: Profile{Text: "(version 1)", Params: []Param{{"P0", "/x"}}}}
	for _, a := range append([]string{path, childArg, mode}, args...) {
		o.Argv = append(o.Argv, []byte(a))
	}
	o.Mark = []byte("TMPDIR=" + t.TempDir())
	o.Env = [][]byte{[]byte("A=1"), o.Mark}
	return o
}

// A testRun is a started order, with the other ends of the program's streams.
type testRun struct {
	*Process
	stdout, stderr <-chan string
	stdin          *os.File
}

func launch(t *testing.T, o *Order, stdin bool) *testRun {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &testRun{}
	l := Launch{Self: path, Arg: testArg}
	pipe := func() (*os.File, <-chan string) {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		text := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(in)
			_ = in.Close()
			text <- string(b)
		}()
		return out, text
	}
	l.Stdout, r.stdout = pipe()
	l.Stderr, r.stderr = pipe()
	if stdin {
		l.Stdin, r.stdin, err = os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Stdin.Close()
	}
	p, err := startOn(newLinux(), l, o)
	_, _ = l.Stdout.Close(), l.Stderr.Close()
	if err != nil {
		t.Fatal(err)
	}
	r.Process = p
	return r
}

// finish waits for the run, and until every process has closed its output.
func (r *testRun) finish() (e Ending, stdout, stderr string) {
	<-r.Ended()
	return r.Reap(), <-r.stdout, <-r.stderr
}

func TestRunReports(t *testing.T) {
	o := order(t, "report", "a b", "\xff", "", "--", strings.Repeat("x", 100_000))
	info, err := os.Stat(string(o.Dir))
	if err != nil {
		t.Fatal(err)
	}
	o.DirID = IDOf(info)
	o.Limits = Limits{CPU: 7, FileSize: 1 << 20, OpenFiles: 99, Processes: 50}
	e, out, stderr := launch(t, o, false).finish()
	if e.Failure != nil || e.ExitCode != 0 || stderr != "" {
		t.Fatalf("Ending = %+v (%+v), %q", e, e.Failure, stderr)
	}
	var got childReport
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := childReport{
		Args: []string{"a b", "\ufffd", "", "--", strings.Repeat("x", 100_000)}, // JSON has no other bytes
		Env:  []string{"A=1", string(o.Mark)}, Dir: string(o.Dir), Descriptors: []string{"0", "1", "2"}, Leader: true,
		Limits: map[string][2]uint64{"core": {0, 0}, "cpu": {7, 12}, "fsize": {1 << 20, 1 << 20}, "nofile": {99, 99}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the program found (-want +got):\n%s", diff)
	}
}

func TestRunEnds(t *testing.T) {
	// Under nohup the hangup is ignored, here and in what starts here. What is handled
	// here is not ignored there.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for _, tt := range []struct {
		mode, arg    string
		code, signal int
	}{
		{"exit", "0", 0, 0}, {"exit", "1", 1, 0}, {"exit", "64", 64, 0}, {"exit", "65", 65, 0}, {"exit", "71", 71, 0},
		{"exit", "125", 125, 0}, {"exit", "126", 126, 0}, {"exit", "137", 137, 0}, {"exit", "255", 255, 0},
		{"signal", "9", -1, 9}, {"signal", "15", -1, 15}, {"signal", "1", -1, 1},
	} {
		t.Run(tt.mode+" "+tt.arg, func(t *testing.T) {
			e, _, stderr := launch(t, order(t, tt.mode, tt.arg), false).finish()
			if e.Failure != nil || e.ExitCode != tt.code || e.Signal != tt.signal || e.MaxRSS == 0 {
				t.Errorf("Ending = %+v (%+v), want %d, %d", e, e.Failure, tt.code, tt.signal)
			}
			if want := "to stderr"; tt.mode == "exit" && stderr != want {
				t.Errorf("stderr = %q, want %q", stderr, want)
			}
		})
	}
}

func TestRunStdin(t *testing.T) {
	r := launch(t, order(t, "cat"), true)
	_, _ = r.stdin.WriteString("hello")
	_ = r.stdin.Close()
	if e, out, _ := r.finish(); out != "hello" || e.ExitCode != 0 {
		t.Errorf("Ending, stdout = %+v, %q, want 0, %q", e, out, "hello")
	}
	if e, out, _ := launch(t, order(t, "cat"), false).finish(); out != "" || e.ExitCode != 0 {
		t.Errorf("without stdin: Ending, stdout = %+v, %q, want 0 and nothing", e, out)
	}
}

func TestRunLimits(t *testing.T) {
	o := order(t, "")
	o.Argv = [][]byte{[]byte("/bin/sh"), []byte("-c"), []byte("while :; do :; done")}
	o.Limits.CPU = 1
	if e, _, _ := launch(t, o, false).finish(); e.Signal != int(unix.SIGXCPU) || e.CPU < 500*time.Millisecond {
		t.Errorf("with a CPU limit: Ending = %+v, want SIGXCPU", e)
	}
	o = order(t, "write", filepath.Join(t.TempDir(), "file"))
	o.Limits.FileSize = 1 << 20
	// A Go program turns SIGXFSZ into an error of the write.
	if e, _, _ := launch(t, o, false).finish(); e.ExitCode != 1 {
		t.Errorf("with a limit on files: Ending = %+v, want status 1", e)
	}
}

func TestRunTooManyProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	o := order(t, "many", "20", file)
	o.Limits.Processes = 5
	e, _, _ := launch(t, o, false).finish()
	if !e.TooMany || e.Signal != int(unix.SIGKILL) {
		t.Errorf("Ending = %+v, want SIGKILL for too many", e)
	}
	nobody(t, file)
}

func TestRunFailures(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		edit func(*Order)
		want Failure
	}{
		{"nested", func(o *Order) { o.Profile.Text = "nested" },
			Failure{StepConfine, 0, "sandbox-exec: sandbox_apply: Operation not permitted"}},
		{"silent", func(o *Order) { o.Profile.Text = "silent" }, Failure{StepConfine, 0, "ended with status 65"}},
		{"killed", func(o *Order) { o.Profile.Text = "killed" }, Failure{StepConfine, 0, "ended by SIGKILL"}},
		{"no sandbox-exec", func(o *Order) { o.SandboxExec = "/nonexistent" },
			Failure{StepConfine, int(unix.ENOENT), "no such file or directory"}},
		{"no folder", func(o *Order) { o.Dir = []byte("/nonexistent") },
			Failure{StepChdir, int(unix.ENOENT), "chdir /nonexistent: no such file or directory"}},
		{"another folder", func(o *Order) { o.DirID = ID{1, 1} }, Failure{StepChdir, int(unix.ESTALE), unix.ESTALE.Error()}},
		{"no program", func(o *Order) { o.Argv[0] = []byte("/nonexistent") },
			Failure{StepExec, int(unix.ENOENT), "no such file or directory"}},
		{"not a program", func(o *Order) { o.Argv[0] = []byte(text) }, Failure{StepExec, int(unix.ENOEXEC), "exec format error"}},
		{"a folder", func(o *Order) { o.Argv[0] = o.Dir }, Failure{StepExec, int(unix.EACCES), "permission denied"}},
		{"nothing", func(o *Order) { o.Argv = nil },
			Failure{StepHelper, 0, "the order cannot be read; was this program's file exchanged while it ran?"}},
		{"too large", func(o *Order) { o.Argv = append(o.Argv, make([]byte, 0), []byte(strings.Repeat("x", 3<<20))) },
			Failure{StepConfine, int(unix.E2BIG), "argument list too long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := order(t, "exit", "0")
			tt.edit(o)
			e, out, stderr := launch(t, o, false).finish()
			if e.Failure == nil || *e.Failure != tt.want {
				t.Errorf("Ending = %+v (%+v), want %+v", e, e.Failure, tt.want)
			}
			if out+stderr != "" {
				t.Errorf("output = %q, %q, want none", out, stderr)
			}
		})
	}
	t.Run("warning", func(t *testing.T) {
		o := order(t, "exit", "3")
		o.Profile.Text = "talkative"
		if e, _, stderr := launch(t, o, false).finish(); e.Failure != nil || e.ExitCode != 3 || stderr != "to stderr" {
			t.Errorf("Ending, stderr = %+v, %q, want 3 and the program's own", e, stderr)
		}
	})
}

// nobody waits until no process recorded in file is left.
func nobody(t *testing.T, file string) {
	t.Helper()
	b, _ := os.ReadFile(file)
	pids := strings.Fields(string(b))
	var left []string
	for deadline := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		left = slices.DeleteFunc(slices.Clone(pids), func(pid string) bool {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("processes %v of %v are left", left, pids)
	}
	for _, pid := range left {
		n, _ := strconv.Atoi(pid)
		_ = unix.Kill(n, unix.SIGKILL)
	}
}

// await waits until a process has recorded itself in file.
func await(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody wrote to %q", file)
		}
	}
}

func TestRunLeavesNobody(t *testing.T) { // PK-01 … PK-06
	for _, how := range []string{"plain", "session", "daemon"} {
		for _, end := range []string{"ends", "killed", "terminated"} {
			t.Run(how+" "+end, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "pids")
				args := []string{how, file}
				if end != "ends" {
					args = append(args, "stay")
				}
				r := launch(t, order(t, "leave", args...), false)
				await(t, file)
				want := int(unix.SIGKILL)
				switch end {
				case "killed":
					r.Kill()
				case "terminated":
					r.Terminate()
					want = int(unix.SIGTERM)
				default:
					want = 0
				}
				if e, _, _ := r.finish(); e.Failure != nil || e.Signal != want {
					t.Errorf("Ending = %+v (%+v), want signal %d", e, e.Failure, want)
				}
				nobody(t, file)
			})
		}
	}
}

// Every process of the run lives only milliseconds, and no parent is left: only the
// mark identifies them.
func TestRunChain(t *testing.T) { // PK-07
	file := filepath.Join(t.TempDir(), "pids")
	r := launch(t, order(t, "chain", "500", file), false)
	if e, _, _ := r.finish(); e.Failure != nil || e.ExitCode != 0 {
		t.Errorf("Ending = %+v (%+v), want 0", e, e.Failure)
	}
	nobody(t, file)
}

func TestRunKilledBeforeItIsConfined(t *testing.T) {
	o := order(t, "exit", "0")
	o.Profile.Text = "hang"
	r := launch(t, o, false)
	r.Kill()
	e, _, _ := r.finish()
	// Either nothing was started yet, or the end is reported as a program's.
	if e.Failure == nil && e.Signal != int(unix.SIGKILL) || e.Failure != nil && e.Failure.Step != StepHelper {
		t.Errorf("Ending = %+v (%+v), want SIGKILL, or no supervisor", e, e.Failure)
	}
}

func TestRunSupervisorKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	r := launch(t, order(t, "leave", "session", file, "stay"), false)
	await(t, file)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	e, _, _ := r.finish()
	if e.Failure == nil || e.Failure.Step != StepWatch || !strings.Contains(e.Failure.Text, "killed") {
		t.Errorf("Ending = %+v (%+v), want one that is not known", e, e.Failure)
	}
	nobody(t, file)
}

// A killed server closes its end of the pipe of orders, and so does this test's
// own process when it starts another one and kills it.
func TestRunServerKilled(t *testing.T) { // PK-14
	if os.Getenv("SEATBELT_TEST_SERVER") != "" {
		r := launch(t, order(t, "leave", "session", os.Getenv("SEATBELT_TEST_SERVER"), "stay"), false)
		r.finish()
		return
	}
	file := filepath.Join(t.TempDir(), "pids")
	server := exec.Command(os.Args[0], "-test.run=^TestRunServerKilled$")
	server.Env = append(os.Environ(), "SEATBELT_TEST_SERVER="+file)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, file)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	nobody(t, file)
}

func TestRunAtOnce(t *testing.T) {
	runs := make([]*testRun, 6)
	for i := range runs {
		runs[i] = launch(t, order(t, "exit", strconv.Itoa(i)), false)
	}
	for i, r := range runs {
		if e, _, _ := r.finish(); e.Failure != nil || e.ExitCode != i {
			t.Errorf("run %d: Ending = %+v (%+v), want %d", i, e, e.Failure, i)
		}
	}
}

func TestHelperMisuse(t *testing.T) {
	for _, args := range [][]string{{}, {"x"}, {modeSupervise}, {modeExec}, {modeExec, "{}"}} {
		if got := helper(newLinux(), args); got != 2 {
			t.Errorf("helper(%q) = %d, want 2", args, got)
		}
	}
}
