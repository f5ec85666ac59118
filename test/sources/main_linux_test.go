package sources_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/test/served"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// binDir is where the program is built; TestMain creates and removes it.
var binDir string

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "packs-mcp-sources-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

var program = sync.OnceValues(func() (string, error) {
	return served.Build(binDir, filepath.Join("..", ".."))
})

// A world is a user's machine, and a repository of packs.
type world struct {
	*served.World
	t    *testing.T
	repo *upstream.Repo
}

func newWorld(t *testing.T) *world {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: served.New(t, file), t: t, repo: upstream.NewRepo(t, nil)}
	w.Env = append(w.Env, "PACKS_MCP_SOURCES_PRIVATE=127.0.0.1")
	return w
}

const (
	id     = "acme/triage"
	others = 20 // further files, so that there is something to interrupt
)

// commit commits a version of the pack, whose tool prints the version.
func (w *world) commit(version string) {
	w.t.Helper()
	files := upstream.Files{
		"triage/SKILL.md":   "---\nname: triage\ndescription: Sorts issues.\n---\n# Triage\n",
		"triage/tell.sh":    "#!/bin/sh\necho version " + version + "\n",
		"triage/tools.json": `{"tools": [{"name": "tell", "description": "Tells.", "inputSchema": {"type": "object", "properties": {}}, "command": {"program": "./tell.sh"}}]}`,
	}
	for i := range others {
		files[fmt.Sprintf("triage/docs/%d/page.md", i)] = fmt.Sprintf("# %d of %s\n", i, version)
	}
	w.repo.Commit(files)
}

// run runs a command to its end, and returns its status and output.
func (w *world) run(args ...string) (status int, out string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), served.Patience)
	defer cancel()
	return w.end(w.Command(ctx, args...))
}

func (w *world) end(cmd *exec.Cmd) (status int, out string) {
	w.t.Helper()
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), both.String()
}

// ok runs a command that must succeed.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	status, out := w.run(args...)
	if status != 0 {
		w.t.Fatalf("packs-mcp %q ended with %d:\n%s", args, status, out)
	}
	return out
}

// pack returns the folder of the pack.
func (w *world) pack() string { return filepath.Join(w.Home, "sources", filepath.FromSlash(id)) }

// left fails if a process left anything except packs in the store, or anything in the
// folder for temporary files.
func (w *world) left(what string) {
	w.t.Helper()
	for _, dir := range []string{filepath.Join(w.Home, "sources", ".store", "tmp"), filepath.Join(w.Home, "sources", ".store", "removed"), w.Temp} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == filler {
				continue
			}
			w.t.Errorf("%s: %s is left in %s", what, e.Name(), dir)
		}
	}
	for _, name := range []string{"sources/.store/step.json", "sources/.store/room", "packs.lock.json.room"} {
		if _, err := os.Lstat(filepath.Join(w.Home, filepath.FromSlash(name))); err == nil {
			w.t.Errorf("%s: %s is left", what, name)
		}
	}
}

// tells returns the output of the pack's tool for a client whose person answers every
// question with decision, or "" if it does not run.
func (w *world) tells(decision string) string {
	w.t.Helper()
	c := w.Stdio(decision, "serve")
	defer c.End()
	pack := map[string]any{"pack_id": id}
	if a, err := c.Call(w.t.Context(), "capability_packs_enable_tools", pack); err != nil || a.Code != "" {
		if err != nil {
			w.t.Error(err)
		}
		return ""
	}
	pack["tool"], pack["arguments"] = "tell", map[string]any{}
	a, err := c.Call(w.t.Context(), "capability_packs_call_tool", pack)
	if err != nil {
		w.t.Error(err)
	}
	if a.Code != "" {
		return ""
	}
	var out struct{ Stdout string }
	if err := a.Into(&out); err != nil {
		w.t.Error(err)
	}
	return strings.TrimSpace(out.Stdout)
}
