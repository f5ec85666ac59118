package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/test/internet"
)

// childVar makes the test binary behave as a program under test: its value names the
// behaviour, which takes the arguments.
const childVar = "SANDBOX_TEST_CHILD"

func TestMain(m *testing.M) {
	// Should the dispatch of package confine ever fail, each helper would run
	// all tests, and each of these would start more helpers.
	if len(os.Args) > 1 && (os.Args[1] == confine.Arg || os.Args[1] == confine.CheckArg) {
		os.Exit(3)
	}
	if mode, ok := os.LookupEnv(childVar); ok {
		os.Exit(child(mode, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func child(mode string, args []string) int {
	switch mode {
	case "args":
		return printJSON(args)
	case "environ":
		return printJSON(os.Environ())
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return code
	case "print": // STREAM TEXT STREAM TEXT …
		for i := 0; i < len(args); i += 2 {
			_, _ = io.WriteString(stream(args[i]), args[i+1])
		}
	case "flood": // STREAM BYTES LINE: repeat LINE
		n, _ := strconv.ParseInt(args[1], 10, 64)
		block := bytes.Repeat([]byte(args[2]), 64<<10/len(args[2]))
		for n > 0 {
			w, err := stream(args[0]).Write(block[:min(n, int64(len(block)))])
			if err != nil {
				return 1
			}
			n -= int64(w)
		}
	case "stdin":
		n, err := io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintf(os.Stderr, "%d %v", n, err)
	case "sleep":
		time.Sleep(time.Hour)
	case "reach":
		return internet.Reach(args)
	case "cwd":
		dir, _ := os.Getwd()
		fmt.Print(dir)
	case "write": // NAME TEXT NAME TEXT …
		for i := 0; i < len(args); i += 2 {
			_ = os.MkdirAll(filepath.Dir(args[i]), 0o700)
			if err := os.WriteFile(args[i], []byte(args[i+1]), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	case "many": // COUNT HOW: that many files, of which HOW "link" makes one file with as many names
		n, _ := strconv.Atoi(args[0])
		for i := range n {
			name := fmt.Sprintf("f%05d", i)
			err := os.ErrInvalid
			if i > 0 && args[1] == "link" {
				err = os.Link("f00000", name)
			}
			if err != nil {
				err = os.WriteFile(name, nil, 0o600)
			}
			if err != nil {
				return 1
			}
		}
	case "tempdir": // leaves something behind that is hard to remove
		dir := filepath.Join(os.Getenv("TMPDIR"), "a")
		if err := os.MkdirAll(filepath.Join(dir, "b"), 0o700); err != nil {
			return 1
		}
		_ = os.WriteFile(filepath.Join(dir, "b", "f"), nil, 0o400)
		_ = os.Chmod(filepath.Join(dir, "b"), 0)
		_ = os.Chmod(dir, 0o500)
		fmt.Print(os.Getenv("TMPDIR"))
	default:
		return systemChild(mode, args)
	}
	return 0
}

// keptChanges returns a store for the changes in runs' layers.
func keptChanges(t *testing.T) *changes.Store {
	t.Helper()
	s, err := changes.Open(t.Context(), changes.Options{Dir: filepath.Join(t.TempDir(), "changes")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stream(name string) *os.File {
	if name == "err" {
		return os.Stderr
	}
	return os.Stdout
}

func printJSON(v any) int {
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		return 1
	}
	return 0
}

// self returns the test binary as a program.
func self(t *testing.T) program.Program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Lookup(exe, program.LookupOptions{})
	if err != nil {
		t.Fatalf("program.Lookup(%q) = %v", exe, err)
	}
	return p
}

// behave returns a command that runs the test binary with the behaviour mode, in a
// workspace of its own.
func behave(t *testing.T, mode string, args ...string) sandbox.Command {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Under the race detector a program would wait for a second when it ends.
	env := []string{childVar + "=" + mode, "GORACE=atexit_sleep_ms=0"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir) // otherwise the child complains on standard error
	}
	return sandbox.Command{
		Program: self(t), Args: args, Dir: ws, Workspace: ws, RunID: "r1",
		Env: sandbox.MergeEnv(sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: ws}), env),
	}
}

// skipVar holds the names of the levels that the tests leave out.
const skipVar = "SANDBOX_TEST_SKIP"

// skipped returns the levels that the tests leave out.
func skipped() []sandbox.Level {
	var levels []sandbox.Level
	for name := range strings.FieldsSeq(os.Getenv(skipVar)) {
		level, err := sandbox.ParseLevel(name)
		if err != nil {
			panic(err)
		}
		levels = append(levels, level)
	}
	return levels
}

// allow is a policy that lets c do what the tests do: read its program, and
// work in its folders.
func allow(limits sandbox.Limits, c sandbox.Command) sandbox.Policy {
	p := sandbox.Policy{Limits: limits}
	if filepath.IsAbs(c.Program.Resolved) {
		p.ReadOnly = []string{c.Program.Resolved}
	}
	for _, dir := range []string{c.Dir, c.Workspace} {
		if filepath.IsAbs(dir) {
			p.Writable = append(p.Writable, dir)
		}
	}
	return p
}

func run(t *testing.T, limits sandbox.Limits, c sandbox.Command) *sandbox.Result {
	t.Helper()
	return runIn(t, 500*time.Millisecond, limits, c)
}

// patience is the grace in tests of programs that end on SIGTERM; it is long enough
// for a busy machine.
const patience = 20 * time.Second

// runIn is run with a grace.
func runIn(t *testing.T, grace time.Duration, limits sandbox.Limits, c sandbox.Command) *sandbox.Result {
	t.Helper()
	r := New(Options{Skip: skipped(), Grace: grace, Drain: 50 * time.Millisecond, TempDir: t.TempDir()})
	res, err := r.Run(t.Context(), allow(limits, c), c)
	if err != nil {
		t.Fatalf("Run(%q) = %v, want a result", c.Args, err)
	}
	return res
}

func artifactPaths(res *sandbox.Result) []string {
	var paths []string
	for _, a := range res.Artifacts {
		paths = append(paths, a.Path)
	}
	return paths
}

func skippedReasons(res *sandbox.Result) map[string]string {
	reasons := map[string]string{}
	for _, s := range res.Skipped {
		reasons[s.Path] = s.Reason
	}
	return reasons
}

func lines(p []byte) []string { return strings.Split(strings.TrimSpace(string(p)), "\n") }
