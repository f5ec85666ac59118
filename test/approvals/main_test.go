//go:build unix

package approvals_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// patience is how long a test waits for something that must happen. Only a failing test
// waits that long.
const patience = 30 * time.Second

// binDir is where the program is built; TestMain creates and removes it.
var binDir string

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "packs-mcp-approvals-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Most tests wait for servers that wait for people, so running more of them at once than
	// there are cores is no slower.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8")
	}
	code := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

// program returns the path in PACKS_MCP_BIN, or else builds the program once, as it is
// shipped: hundreds of processes with the race detector would take too long. A test that
// needs the race detector builds its own.
var program = sync.OnceValues(func() (string, error) {
	if file := os.Getenv("PACKS_MCP_BIN"); file != "" {
		return file, nil
	}
	// The test cache tracks the files that a test reads, but not what "go build" reads.
	for _, dir := range []string{"cmd", "internal", "schemas", "examples", "go.mod", "go.sum"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return "", err
		}
	}
	file := filepath.Join(binDir, "packs-mcp")
	cmd := exec.Command("go", "build", "-trimpath", "-o", file, "github.com/packs-mcp/packs-mcp/cmd/packs-mcp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return file, nil
})

// number returns the value of an environment variable, or a default.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number", name, text)
	}
	return n
}

// A world is one user's machine: a home, packs, and the servers that clients started.
type world struct {
	t       *testing.T
	program string
	root    string // with symbolic links resolved
	packs   string
	home    string // PACKS_MCP_HOME
	env     []string

	mu sync.Mutex
	// denied counts the calls that were answered with a denial, and decidedLate those that
	// a person denied after they had returned. Each is one entry of the log.
	denied, decidedLate int
	// damaged says that the log is not intact, or lacks denials, because the test is about
	// that.
	damaged bool
	// complains says that servers may log errors.
	complains bool
}

// triage is the pack of most tests. Each run of greet creates a file named after the run.
const triage = `
-- triage/SKILL.md --
---
name: triage
description: Triage incidents.
---
# Triage

Read docs/steps.md.
-- triage/docs/steps.md --
Step one.
-- triage/tools.json --
{"tools": [
  {"name": "greet", "description": "Say hello.",
   "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"], "additionalProperties": false},
   "command": {"program": "./scripts/greet.sh", "args": ["{{who}}"]}},
  {"name": "look", "description": "Look around.", "policy": {"read_only": true},
   "command": {"program": "./scripts/greet.sh", "args": ["looked"]}},
  {"name": "restart", "description": "Restart production.", "policy": {"confirm_before_run": true},
   "command": {"program": "./scripts/greet.sh", "args": ["restarted"]}},
  {"name": "send", "description": "Send it.", "policy": {"network": "full"},
   "command": {"program": "./scripts/greet.sh", "args": ["sent"]}}
]}
-- triage/scripts/greet.sh --
#!/bin/sh
: >"$PACKS_WORKSPACE/$PACKS_RUN_ID"
echo "hello $1"
`

// newWorld creates a world with the packs of a txtar tree. Its programs get exactly the
// variables in env, if there are any.
func newWorld(t *testing.T, tree string, env ...string) *world {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh: not on this system, and the tools of the test's packs are POSIX scripts")
	}
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, program: file, root: root, packs: filepath.Join(root, "packs"), home: filepath.Join(root, "home")}
	t.Cleanup(func() { // copies of packs are read-only, and could not be removed
		_ = filepath.WalkDir(filepath.Join(w.home, "copies"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	w.put("browser.sh", "#!/bin/sh\necho \"$1\" >>\""+root+"/shown\"\n")
	w.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "PACKS_MCP_HOME=" + w.home, "PACKS_MCP_SANDBOX_REQUIRE=none",
		"BROWSER=" + filepath.Join(root, "browser.sh"),
		"GORACE=atexit_sleep_ms=0", // otherwise each command built with -race waits for a second
	}, env...)
	testdata.Plant(t, w.packs, tree)
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.check) // once the servers have ended
	return w
}

// put writes a file below the root; a script becomes executable.
func (w *world) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, filepath.FromSlash(name))
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	// Replace it atomically, since servers may read it at any time.
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".new", []byte(text), mode), os.Chmod(path+".new", mode), os.Rename(path+".new", path))
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) log() string { return filepath.Join(w.home, "audit.jsonl") }

// check holds at the end of every test: the chain is intact, and each denial that a client
// saw is one log entry that says why (HM-01), or is counted in such an entry beyond the
// limit.
func (w *world) check() {
	if w.damaged || w.t.Failed() {
		return
	}
	if _, err := os.Stat(w.log()); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if stdout, stderr, status := w.command("audit", "verify"); status != 0 || !strings.HasPrefix(stdout, "ok: ") {
		w.t.Errorf("audit verify = %d, %s%s, want ok", status, stdout, stderr)
	}
	denials := 0
	for _, e := range w.entries() {
		if _, more, ok := strings.Cut(e.Reason, ": denied "); ok && e.Event == audit.EventRefusal && e.Count > 0 {
			n := 0
			_, _ = fmt.Sscanf(more, "%d", &n)
			denials += n
		}
		if e.Event == audit.EventDecision && e.Decision == "deny" {
			denials++
			if e.Reason == "" || e.Call == "" {
				w.t.Errorf("the log has a denial without a reason or a call: %+v", e)
			}
		}
	}
	if want := w.denied + w.decidedLate; denials != want {
		w.t.Errorf("the log has %d denials, want one for each of %d", denials, want)
	}
	if data, err := os.ReadFile(w.log()); err != nil || hasControl(string(data)) {
		w.t.Errorf("the log has control characters, or cannot be read: %v", err)
	}
}

// hasControl reports whether text could control a terminal or look like other text: it
// contains control characters, or characters that reverse or hide text.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
			r >= 0xe0000 && r <= 0xe007f || r == 0x2028 || r == 0x2029
	})
}

// entries returns the entries of the audit log.
func (w *world) entries() []audit.Entry {
	w.t.Helper()
	var all []audit.Entry
	for line, err := range audit.Read(w.log()) {
		if _, torn := errors.AsType[*audit.LineError](err); torn && w.damaged {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, line.Entry)
	}
	return all
}

// decisions returns the log's decisions in short form: "run once terminal".
func (w *world) decisions() []string {
	w.t.Helper()
	var all []string
	for _, e := range w.entries() {
		if e.Event == audit.EventDecision {
			all = append(all, strings.TrimSpace(e.Kind+" "+e.Decision+" "+e.Channel))
		}
	}
	return all
}

// runs returns the ids of the runs that left their file.
func (w *world) runs() []string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.home, "workspaces", "*", "run-*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return all
}

// command runs the program until it ends.
func (w *world) command(args ...string) (stdout, stderr string, status int) {
	// Not the test's own context, which has ended during cleanup.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.env, w.root, &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		w.t.Errorf("packs-mcp %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// ok runs a command that must succeed, and returns its output.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	stdout, stderr, status := w.command(args...)
	if status != 0 {
		w.t.Fatalf("packs-mcp %q = %d, %s%s, want 0", args, status, stdout, stderr)
	}
	return stdout
}

// fails runs a command that must fail with this status and these words.
func (w *world) fails(status int, words string, args ...string) {
	w.t.Helper()
	stdout, stderr, got := w.command(args...)
	if got != status || !strings.Contains(stderr, words) || !strings.HasPrefix(stderr, "packs-mcp: ") {
		w.t.Errorf("packs-mcp %q = %d, %s%s, want %d and %q", args, got, stdout, stderr, status, words)
	}
}

// found returns the running servers that can be answered in a terminal, and the calls that
// wait there.
func (w *world) found() (servers []*terminal.Server, calls []control.Call) {
	w.t.Helper()
	all, err := terminal.Find(w.t.Context(), filepath.Join(w.home, "run"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range all.Servers {
		some, err := s.Pending(w.t.Context())
		if err == nil {
			calls = append(calls, some...)
		}
	}
	return all.Servers, calls
}

// pending waits until exactly n calls wait for a person.
func (w *world) pending(n int) []control.Call {
	w.t.Helper()
	var calls []control.Call
	w.until(fmt.Sprintf("%d calls wait for a person", n), func() bool {
		servers, now := w.found()
		calls = now
		return len(servers) > 0 && len(calls) == n
	})
	return calls
}

// until waits until done returns true, for events in other processes.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	late, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("in vain waited until %s", what)
		}
	}
}

// approve allows, once and by the command, the only waiting call.
func (w *world) approve() {
	w.t.Helper()
	w.ok("approvals", "approve", w.pending(1)[0].Code)
}

// decide answers a call as a person in a terminal does, who has more choices than the
// command without a terminal.
func (w *world) decide(code, decision string) {
	w.t.Helper()
	servers, _ := w.found()
	for _, s := range servers {
		calls, err := s.Pending(w.t.Context())
		if err != nil || !slices.ContainsFunc(calls, func(c control.Call) bool { return c.Code == code }) {
			continue
		}
		if _, err := s.Decide(w.t.Context(), control.Decision{Code: code, Decision: decision}); err != nil {
			w.t.Fatalf("Decide(%s, %q) = %v", code, decision, err)
		}
		return
	}
	w.t.Fatalf("no call waits under the code %s", code)
}

// says reports whether a question contains some words, ignoring line breaks and
// indentation.
func says(question, words string) bool {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
	return strings.Contains(squeeze(question), squeeze(words))
}

// decode decodes JSON that a command printed.
func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
