package served

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// Patience is how long a test waits for something that must happen. Only a failing
// test waits that long.
const Patience = 60 * time.Second

// Build returns the program that PACKS_MCP_BIN names, or builds it in dir as it is
// shipped. module is the way from the working folder to the module's.
func Build(dir, module string) (string, error) {
	if file := os.Getenv("PACKS_MCP_BIN"); file != "" {
		return file, nil
	}
	// The test cache tracks the files that a test reads, but not what "go build" reads:
	// without this, results for an older program would be reused.
	for _, part := range []string{"cmd", "internal", "schemas", "examples", "go.mod", "go.sum"} {
		err := filepath.WalkDir(filepath.Join(module, part), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return "", err
		}
	}
	file := filepath.Join(dir, "packs-mcp")
	cmd := exec.Command("go", "build", "-trimpath", "-o", file, "github.com/packs-mcp/packs-mcp/cmd/packs-mcp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return file, nil
}

// A World is one user's machine: a home, a folder of packs, and the servers that
// clients start there.
type World struct {
	T       testing.TB
	Program string
	Root    string // resolved
	Packs   string // the root that servers are started with
	Home    string // PACKS_MCP_HOME
	Temp    string // TMPDIR
	Env     []string
}

// New makes a World with empty folders.
func New(t testing.TB, program string) *World {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{
		T: t, Program: program, Root: root,
		Packs: filepath.Join(root, "packs"), Home: filepath.Join(root, "home"), Temp: filepath.Join(root, "tmp"),
	}
	for _, dir := range []string{w.Packs, w.Home, w.Temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "TMPDIR=" + w.Temp, "PACKS_MCP_HOME=" + w.Home,
		"PACKS_MCP_SANDBOX_REQUIRE=none", "PACKS_MCP_APPROVAL_CHANNELS=elicitation", "PACKS_MCP_TOKEN=" + token,
		// If the program is built with -race, a race ends it, and no command waits for a
		// second at exit.
		"GORACE=atexit_sleep_ms=0 halt_on_error=1",
	}
	t.Cleanup(w.unlock)
	return w
}

// unlock makes the folders removable: copies of packs are read-only, and a test may
// have removed rights to others.
func (w *World) unlock() {
	_ = filepath.WalkDir(w.Root, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// Put writes a file below the root.
func (w *World) Put(name, text string) {
	w.T.Helper()
	path := filepath.Join(w.Root, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.T.Fatal(err)
	}
}

// Command is the program with arguments, in the user's environment. It is killed
// when ctx ends.
func (w *World) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.Program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = w.Env, w.Root, time.Second
	return cmd
}

// Entries verifies the audit log with the program, and returns the entries.
func (w *World) Entries() []audit.Entry {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if out, err := w.Command(ctx, "audit", "verify").CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("ok: ")) {
		w.T.Errorf("audit verify: %v, printed %q, want ok", err, out)
	}
	var all []audit.Entry
	for line, err := range audit.Read(filepath.Join(w.Home, "audit.jsonl")) {
		if err != nil {
			w.T.Fatal(err)
		}
		all = append(all, line.Entry)
	}
	return all
}

// Until waits until other processes have done something.
func (w *World) Until(what string, done func() bool) {
	w.T.Helper()
	late, tick := time.After(Patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			w.T.Fatalf("in vain waited until %s", what)
		}
	}
}
