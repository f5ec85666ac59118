package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the golden parts of the scripts anew")

// Other tests run this program as a command of its own: its streams, signals
// and exit status are the real ones.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"packs-mcp": main})
}

func TestScripts(t *testing.T) {
	// Build it as it is shipped: in hundreds of short runs the race detector would find
	// little, and would double the time of all tests.
	bin := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(bin, "packs-mcp"+exeSuffix()), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	t.Run("initialisation", func(t *testing.T) { testInitialisation(t, build.Args[len(build.Args)-2]) })
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			// A script uses only its own folder, and nothing of the person who runs
			// it.
			for _, dir := range []string{"home", "state"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
					return err
				}
			}
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("PACKS_MCP_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("BIN", bin)
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			// Programs run at this machine's best level, which may be none.
			env.Setenv("PACKS_MCP_SANDBOX_REQUIRE", "none")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"jsonlines": jsonLines,
			"plain":     plain,
			"edit":      edit,
			"dropline":  dropLine,
			"empty":     empty,
			"helps":     helps,
			"misuse":    misused,
		},
		Condition: condition,
	})
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// condition implements [sh]: packs with scripts can run.
func condition(cond string) (bool, error) {
	switch cond {
	case "sh":
		_, err := os.Stat("/bin/sh")
		return err == nil, nil
	}
	return false, nil
}

// jsonLines FILE ID... fails unless each line of the file is one JSON-RPC
// message, and the messages have these ids, written as in JSON; a notification
// has its method instead. The file "stdout" is what the last program wrote.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: jsonlines FILE ID...")
	}
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[0])))
	lines.Buffer(nil, 1<<20)
	var ids []string
	for lines.Scan() {
		var message struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
		}
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil || message.JSONRPC != "2.0" {
			ts.Fatalf("the line %q is not a message: %v", lines.Text(), err)
		}
		if ids = append(ids, message.Method); message.Method == "" {
			ids[len(ids)-1] = string(message.ID)
		}
	}
	want := slices.Sorted(slices.Values(args[1:])) // requests are answered in any order
	if slices.Sort(ids); !slices.Equal(ids, want) {
		ts.Fatalf("the messages are %q, want %q", ids, want)
	}
}

var (
	digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	times   = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`)
)

// plain FILE NEW writes a copy of a file without what differs from run to run.
func plain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: plain FILE NEW")
	}
	text := ts.ReadFile(args[0])
	for _, work := range []string{ts.Getenv("WORK"), resolved(ts.Getenv("WORK"))} {
		text = strings.ReplaceAll(text, work, "$WORK")
	}
	text = times.ReplaceAllString(digests.ReplaceAllString(text, "DIGEST"), "TIME")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

func resolved(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

// edit FILE OLD NEW replaces text in a file, and fails if the text is not there.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o644))
}

// dropline FILE N removes the Nth line of a file.
func dropLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: dropline FILE N")
	}
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n < 1 || n > len(lines) {
		ts.Fatalf("%s has %d lines", args[0], len(lines))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(slices.Delete(lines, n-1, n), "")), 0o600))
}

// empty DIR fails if the folder is not empty.
func empty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: empty DIR")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, e := range entries {
		ts.Fatalf("%s has %q in it", args[0], e.Name())
	}
}

// helps [COMMAND...] fails unless the command's help has an example.
func helps(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: helps [COMMAND...]")
	}
	ts.Check(ts.Exec("packs-mcp", append(args, "--help")...))
	out := ts.ReadFile("stdout")
	if !strings.Contains(out, "\nExamples:\n  ") || !strings.Contains(out, "packs-mcp") || !strings.Contains(out, "\nUsage:\n") {
		ts.Fatalf("the help of %q has no example:\n%s", args, out)
	}
	if text := ts.ReadFile("stderr"); text != "" {
		ts.Fatalf("the help of %q is on standard error too: %s", args, text)
	}
}

// misused ERROR HINT ARG... fails unless the command line is refused with status
// 2 and exactly two lines that contain these words.
func misused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: misuse ERROR HINT ARG...")
	}
	err := ts.Exec("packs-mcp", args[2:]...)
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 2 {
		ts.Fatalf("packs-mcp %q ended with %v, want status 2", args[2:], err)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("packs-mcp %q wrote on standard output: %s", args[2:], out)
	}
	lines := strings.Split(strings.TrimRight(ts.ReadFile("stderr"), "\n"), "\n")
	if len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "packs-mcp: error: ") || !strings.Contains(lines[0], args[0]) ||
		!strings.HasPrefix(lines[1], "packs-mcp: hint: ") || !strings.Contains(lines[1], args[1]) {
		ts.Fatalf("packs-mcp %q said %q, want an error with %q and a hint with %q", args[2:], lines, args[0], args[1])
	}
}
